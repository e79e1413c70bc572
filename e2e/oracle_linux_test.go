package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"xdspub/internal/envoytest"
	"xdspub/internal/sh"
)

// TestOracleKilled: an Envoy that is asked dies with xdspub, and leaves nothing behind.
func TestOracleKilled(t *testing.T) {
	dir := t.TempDir()
	envoy, fifo, temp := filepath.Join(dir, "envoy"), filepath.Join(dir, "alive"), filepath.Join(dir, "temp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	sh.Program(t, envoy, "#!/bin/sh\nexec sleep 3600 4<>"+fifo+"\n")
	s := newFixture(t, map[string]string{"a.yaml": refusedCluster})
	cmd := exec.Command(watcher, append(append([]string{"watch", "--disable", "health-check", "--envoy", envoy}, s.args...), s.src)...)
	cmd.Env = append(environment(), "TMPDIR="+temp)
	watch := startCommand(t, cmd)
	runs := func() (bool, string) { // it can be written to as long as somebody may read
		f, err := os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return false, err.Error()
		}
		f.Close()
		return true, "somebody reads"
	}
	envoytest.Eventually(t, patience, "Envoy runs", runs)
	watch.Signal(t, syscall.SIGKILL)
	watch.Wait(t)
	envoytest.Eventually(t, patience, "Envoy ends", func() (bool, string) { ok, state := runs(); return !ok, state })
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}
