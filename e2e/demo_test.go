package e2e

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"xdspub/tools/envoytest"
)

// demo is a run of scripts/demo in its own process group and temporary directory, so that clean finds the processes
// and files that the demo leaves.
type demo struct {
	*process
	tmp string
}

func startDemo(t *testing.T, env ...string) demo {
	t.Helper()
	if testing.Short() {
		t.Skip("the demo takes seconds")
	}
	// The program is built already, so that the demo does not spend the time limit on building it.
	if err := install(); err != nil {
		t.Fatal(err)
	}
	d := demo{tmp: t.TempDir()}
	cmd := exec.Command("scripts/demo")
	cmd.Env = append(append(environment(), "TMPDIR="+d.tmp), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	d.process = startCommand(t, cmd)
	return d
}

// clean fails the test if the demo has left a file or a process.
func (d demo) clean(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(d.tmp)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		t.Errorf("the demo has left %s", entry.Name())
	}
	if err := syscall.Kill(-d.cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the demo has left a process in its group: %v", err)
	}
}

// TestDemo runs two demos at once: each takes other ports.
func TestDemo(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	for _, d := range []demo{startDemo(t), startDemo(t)} {
		d.WaitLog(t, "All went as told.")
		if exit := d.Wait(t); exit != 0 {
			t.Errorf("exit status %d", exit)
		}
		d.clean(t)
		if strings.Contains(d.Log(), "\x1b") {
			t.Error("escape sequences, though the output is no terminal")
		}
	}
}

func TestDemoInterrupted(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	d := startDemo(t)
	d.WaitLog(t, "GET http://") // all its programs are running
	d.Signal(t, syscall.SIGTERM)
	if exit := d.Wait(t); exit != 143 {
		t.Errorf("exit status %d, want 143", exit)
	}
	d.clean(t)
}

func TestDemoFails(t *testing.T) {
	t.Parallel()
	broken, err := exec.LookPath("false")
	if err != nil {
		t.Fatal(err)
	}
	d := startDemo(t, "XDSPUB_ENVOY="+broken)
	d.WaitLog(t, "demo: waiting for the answer web to GET")
	if exit := d.Wait(t); exit != 1 {
		t.Errorf("exit status %d, want 1", exit)
	}
	d.clean(t)
}
