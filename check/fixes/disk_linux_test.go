package fixes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// othersTree names the source tree of root for the process that TestOtherUser starts.
const othersTree = "XDSPUB_OTHERS_TREE"

// TestOtherUser: a file of another user is not replaced, because it would get a new owner.
func TestOtherUser(t *testing.T) {
	if dir := os.Getenv(othersTree); dir != "" {
		x := &tree{t, dir, New(false)}
		x.fix()
		if list := x.run.Refused(); len(list) != 1 || list[0].Reason != "the file belongs to another user" {
			t.Errorf("refused: %v", list)
		}
		if err := x.run.Write(); err != nil {
			t.Error(err)
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: the tests do not run as root")
	}
	dir, err := os.MkdirTemp("", "others") // not t.TempDir: other users can't enter it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	x := &tree{t, dir, nil}
	x.write("a.yaml", wrong, 0o666)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestOtherUser$") // by this path, because only root may enter the folder of the binary
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir, cmd.Env = "/", append(os.Environ(), othersTree+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "PASS") {
		t.Errorf("%v\n%s", err, out)
	}
	x.has("a.yaml", wrong, 0o666)
}

// TestOwner: a replaced file keeps its owner and its group.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: the tests do not run as root")
	}
	x := newTree(t)
	x.write("a.yaml", wrong, 0o640)
	if err := os.Chown(filepath.Join(x.dir, "a.yaml"), 12345, 54321); err != nil {
		t.Fatal(err)
	}
	x.fix()
	if err := x.run.Write(); err != nil {
		t.Fatal(err)
	}
	x.has("a.yaml", right, 0o640)
	info, err := os.Stat(x.path("a.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t); owner.Uid != 12345 || owner.Gid != 54321 {
		t.Errorf("the file belongs to %d:%d", owner.Uid, owner.Gid)
	}
}
