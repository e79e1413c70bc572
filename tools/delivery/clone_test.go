package delivery

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// root is the root of the repository, relative to the working directory of these tests.
const root = "../.."

// tmp is a folder for files that several tests share. TestMain removes it.
var tmp string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "xdspub-delivery-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	tmp = dir
	// The tests do not depend on the git settings of the user.
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "test", "GIT_AUTHOR_EMAIL": "test@example.org", "GIT_COMMITTER_NAME": "test", "GIT_COMMITTER_EMAIL": "test@example.org",
		// With the same flags for all programs, each package is compiled once.
		"GOFLAGS": "-trimpath", "CGO_ENABLED": "0", "GOTOOLCHAIN": "local",
	} {
		if err := errors.Join(err, os.Setenv(name, value)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// host is the name of this system for scripts/dist.
const host = runtime.GOOS + "/" + runtime.GOARCH

// repository returns a new repository with one commit, which has the present files of this repository.
var repository = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(tmp, "xdspub")
	_, err := shell(root, nil, `
		mkdir -p "$0"
		export GIT_INDEX_FILE="$0.index"
		git add --all && git checkout-index --all --prefix "$0/"
		unset GIT_INDEX_FILE
		cd "$0" && git init --quiet && git add . && git commit --quiet --message all`, dir)
	return dir, err
})

// built returns the path of the program in the output of scripts/dist for this system.
var built = sync.OnceValues(func() (string, error) {
	dir, err := repository()
	if err != nil {
		return "", err
	}
	_, err = shell(dir, nil, `scripts/dist "$0"`, host)
	return filepath.Join(dir, "dist", "xdspub-"+runtime.GOOS+"-"+runtime.GOARCH), err
})

// clone returns a folder with a clone of repository.
func clone(t *testing.T) string {
	t.Helper()
	from := the(t, repository)
	dir := filepath.Join(t.TempDir(), "clone of xdspub")
	if _, err := shell(".", nil, `git clone --quiet "$0" "$1"`, from, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// inPath returns a folder with the program, for PATH.
func inPath(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(the(t, built), filepath.Join(dir, "xdspub")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// the returns the result of thing, which several tests share. It skips the test with -short.
func the(t *testing.T, thing func() (string, error)) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds programs")
	}
	for _, program := range []string{"git", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("NOT TESTED, needs ", program, ": ", err)
		}
	}
	path, err := thing()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// shell runs a script in a folder, with env added to the environment. args are $0, $1 and so on.
func shell(dir string, env []string, script string, args ...string) (output string, err error) {
	cmd := exec.Command("bash", append([]string{"-euo", "pipefail", "-c", script}, args...)...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", script, err, out)
	}
	return string(out), err
}
