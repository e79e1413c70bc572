package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"xdspub/tools/envoytest"
	"xdspub/tools/sh"
)

// TestOracleKilled: an Envoy of --envoy dies with xdspub, and leaves no files behind, in each mode.
func TestOracleKilled(t *testing.T) {
	for mode, script := range map[string]string{
		"validate": "",
		"shadow":   `[ "$3" = --mode ] && { cat <&3 >/dev/null; echo "configuration '/dev/fd/3' OK"; exit 0; }; : >${2%/*}/admin` + "\n",
	} {
		t.Run(mode, func(t *testing.T) { killed(t, mode, script) })
	}
}

func killed(t *testing.T, mode, script string) {
	dir := t.TempDir()
	envoy, fifo, temp := filepath.Join(dir, "envoy"), filepath.Join(dir, "alive"), filepath.Join(dir, "temp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	sh.Program(t, envoy, "#!/bin/sh\n"+script+"exec sleep 3600 4<>"+fifo+"\n")
	s := newFixture(t, map[string]string{"a.yaml": refusedCluster})
	cmd := exec.Command(watcher, append(append([]string{"watch", "--disable", "health-check", "--envoy", envoy, "--envoy-mode", mode}, s.args...), s.src)...)
	cmd.Env = append(environment(), "TMPDIR="+temp)
	watch := startCommand(t, cmd)
	runs := func() (bool, string) { // a process has the fifo open for reading
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
	envoytest.Eventually(t, patience, "nothing is left", func() (bool, string) {
		left, err := os.ReadDir(temp)
		return err == nil && len(left) == 0, fmt.Sprint(left, err)
	})
}
