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

// root is the root of the repository, seen from where go test runs these tests.
const root = "../.."

// tmp is the folder of what several tests use; TestMain removes it.
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
	// The settings of whoever runs the tests are not those of the machines that these files are for.
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "test", "GIT_AUTHOR_EMAIL": "test@example.org", "GIT_COMMITTER_NAME": "test", "GIT_COMMITTER_EMAIL": "test@example.org",
		// All programs are compiled alike, so each package once.
		"GOFLAGS": "-trimpath", "CGO_ENABLED": "0", "GOTOOLCHAIN": "local",
	} {
		if err := errors.Join(err, os.Setenv(name, value)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// host is this system, as scripts/dist names it.
const host = runtime.GOOS + "/" + runtime.GOARCH

// repository is a commit of this repository as it lies here, alone in a repository of its own.
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

// built is the program, with all that scripts/dist makes beside it.
var built = sync.OnceValues(func() (string, error) {
	dir, err := repository()
	if err != nil {
		return "", err
	}
	_, err = shell(dir, nil, `scripts/dist "$0"`, host)
	return filepath.Join(dir, "dist", "xdspub-"+runtime.GOOS+"-"+runtime.GOARCH), err
})

// clone returns a folder with a clone of this repository.
func clone(t *testing.T) string {
	t.Helper()
	from := the(t, repository)
	dir := filepath.Join(t.TempDir(), "clone of xdspub")
	if _, err := shell(".", nil, `git clone --quiet "$0" "$1"`, from, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// inPath returns a folder with the program, to be searched by a shell.
func inPath(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(the(t, built), filepath.Join(dir, "xdspub")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// the returns what several tests use.
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

// shell runs a script in a folder, with some environment. Its arguments are $0, $1 and so on.
func shell(dir string, env []string, script string, args ...string) (output string, err error) {
	cmd := exec.Command("bash", append([]string{"-euo", "pipefail", "-c", script}, args...)...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", script, err, out)
	}
	return string(out), err
}
