// Package sh runs shell scripts for tests.
package sh

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Run runs a script in a folder, and returns its output. If a command fails, Run ends the test.
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

// Program writes an executable file. A child process writes it: otherwise, a process that another test starts at
// this moment could inherit the descriptor, and Linux executes no file that is open for writing.
func Program(t testing.TB, path, text string) {
	t.Helper()
	cmd := exec.Command("sh", "-euc", `cat >"$0"; chmod 755 "$0"`, path)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("write %s: %v\n%s", path, err, out)
	}
}

// Git skips the test if there is no git, and keeps git from reading the settings of this machine.
func Git(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("NOT TESTED, needs git: ", err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
}
