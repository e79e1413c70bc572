//go:build unix

package load_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"xdspub/source/load"
)

// TestPipe checks that Load does not read a pipe, which never ends.
func TestPipe(t *testing.T) {
	for name, want := range map[string]string{"pipe.yaml": "not a regular file", "pipe.conf": "", "pipe.json": "not a regular file"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "a.yaml", cluster("a"))
			if err := syscall.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				_, err := load.New(load.Options{}).Load(t.Context(), dir)
				done <- err
			}()
			select {
			case err := <-done:
				if got := ""; err != nil {
					got = err.Error()
					if want == "" || !strings.Contains(got, want) {
						t.Errorf("%v, want %q", err, want)
					}
				} else if want != "" {
					t.Errorf("no error, want %q", want)
				}
			case <-time.After(2 * time.Minute):
				t.Fatal("Load hangs")
			}
		})
	}
}

// unreadableTree is set in the process that TestUnreadable starts.
const unreadableTree = "XDSPUB_TEST_UNREADABLE_TREE"

// TestUnreadable checks that an unreadable file or folder is an error.
func TestUnreadable(t *testing.T) {
	if tree := os.Getenv(unreadableTree); tree != "" {
		for _, name := range []string{"folder", "file"} {
			root := filepath.Join(tree, name)
			result, err := load.New(load.Options{}).Load(t.Context(), root)
			if result != nil || !os.IsPermission(err) || !strings.Contains(err.Error(), root) {
				t.Errorf("%s: %v, %v", name, result, err)
			}
		}
		return
	}
	// Not t.TempDir: other users can't enter it.
	dir, err := os.MkdirTemp("", "unreadable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	write(t, dir, "folder/locked/a.yaml", cluster("a"), "folder/b.yaml", cluster("b"), "file/a.yaml", cluster("a"))
	for path, mode := range map[string]os.FileMode{"": 0o755, "folder/locked": 0o000, "file/a.yaml": 0o000} {
		if err := os.Chmod(filepath.Join(dir, path), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "folder/locked"), 0o755) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestUnreadable$")
	if os.Getuid() == 0 { // root reads everything
		if runtime.GOOS != "linux" {
			t.Skip("root can't run this test binary as somebody else here")
		}
		cmd.Path = "/proc/self/exe" // the binary is in a folder that only root may enter
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), unreadableTree+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}
