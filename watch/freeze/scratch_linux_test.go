package freeze

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestScratch runs TestAt in a directory that is the root, and that has only the test program: time zones come from the
// program, as in a container from scratch.
func TestScratch(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if out, err := exec.Command("cp", program, filepath.Join(dir, "test")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command("/test", "-test.run=^(TestAt|TestZoneNamed)$", "-test.v")
	cmd.Env = []string{"ZONEINFO="}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if _, ran := errors.AsType[*exec.ExitError](err); err != nil && !ran {
		t.Skip("NOT TESTED: the system lets no user make namespaces: ", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
