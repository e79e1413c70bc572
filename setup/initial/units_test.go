package initial

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// verified returns the output of systemd-analyze for the units, after a change of their text.
func verified(t *testing.T, change func(string) string) string {
	t.Helper()
	dir := t.TempDir()
	program, err := os.Executable() // any program that exists
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"verify"}
	for _, name := range []string{"xdspub.service", "envoy.service"} {
		text := regexp.MustCompile(`/usr/local/bin/\w+`).ReplaceAllLiteralString(string(file(t, "systemd/"+name)), program)
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(change(text)), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	said, err := exec.CommandContext(ctx, "systemd-analyze", args...).CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("systemd-analyze hangs: %s", said)
	}
	var lines []string
	for line := range strings.Lines(string(said)) {
		if strings.Contains(line, "xdspub.service") || strings.Contains(line, "envoy.service") { // ignore the other units of this machine
			lines = append(lines, line)
		}
	}
	if err != nil && len(lines) == 0 {
		t.Skipf("NOT TESTED: systemd-analyze does not run here: %v\n%s", err, said)
	}
	return strings.Join(lines, "")
}

// TestUnits: systemd knows all settings of the units.
func TestUnits(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("NOT TESTED: systemd-analyze is not installed")
	}
	misspelt := func(s string) string { return strings.ReplaceAll(s, "ProtectHome=", "ProtectHoem=") }
	if said := verified(t, misspelt); !strings.Contains(said, "ProtectHoem") {
		t.Skipf("NOT TESTED: systemd-analyze does not run here: it takes any key\n%s", said)
	}
	if said := verified(t, func(s string) string { return s }); said != "" {
		t.Error(said)
	}
}

// TestUnitTellsItsState: systemd knows when the watch is ready, reloads it, and starts it again if it hangs.
func TestUnitTellsItsState(t *testing.T) {
	text := string(file(t, "systemd/xdspub.service"))
	for _, line := range []string{"Type=notify", "WatchdogSec=1min", "ExecReload=/bin/kill -HUP $MAINPID", "TimeoutStartSec=5min"} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
}

// TestUnitsAreWhole: both units are hardened, have a user, and can be enabled.
func TestUnitsAreWhole(t *testing.T) {
	for _, name := range []string{"xdspub.service", "envoy.service"} {
		text := "\n" + string(file(t, "systemd/"+name))
		for _, line := range []string{"User=", "Group=", "CapabilityBoundingSet=", "NoNewPrivileges=yes", "ProtectSystem=strict", "SystemCallFilter=@system-service", "SystemCallErrorNumber=ENOSYS", "[Install]\nWantedBy=multi-user.target"} {
			if !strings.Contains(text, "\n"+line) {
				t.Errorf("%s has no line %s", name, line)
			}
		}
	}
}
