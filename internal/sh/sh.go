// Package sh runs shell scripts for tests.
package sh

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Run runs a script in a folder, and returns what it prints. The test ends where a command fails.
func Run(t testing.TB, dir, script string) (output string) {
	t.Helper()
	cmd := exec.Command("sh", "-euc", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Git skips the test where there is no git, and has git read no settings of this machine.
func Git(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("NOT TESTED, needs git: ", err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
}
