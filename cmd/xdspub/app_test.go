package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestFlagsAreTried checks that the script flags_COMMAND tries each flag of the command.
func TestFlagsAreTried(t *testing.T) {
	flagsAreTried(t, "flags", newApp(io.Discard, io.Discard).Commands)
}

func flagsAreTried(t *testing.T, prefix string, commands []*cli.Command) {
	t.Helper()
	for _, c := range commands {
		name := prefix + "_" + c.Name
		flagsAreTried(t, name, c.Subcommands)
		if len(c.Flags) == 0 {
			continue
		}
		script, err := os.ReadFile("testdata/script/" + name + ".txtar")
		if err != nil {
			t.Error(err)
			continue
		}
		for _, f := range c.Flags {
			if !strings.Contains(string(script), "--"+f.Names()[0]+" ") {
				t.Errorf("%s --%s is not tried", c.Name, f.Names()[0])
			}
			if usageOf(f) == "" {
				t.Errorf("%s --%s has no usage", c.Name, f.Names()[0])
			}
		}
	}
}

// TestErrorsForTerminals checks that an error has no control characters from the name of a file.
func TestErrorsForTerminals(t *testing.T) {
	var b strings.Builder
	if status := run([]string{"xdspub", "validate", t.TempDir() + "/no\x1b[2J\r"}, io.Discard, &b); status != exitFailed {
		t.Error(status)
	}
	if text := b.String(); !strings.HasSuffix(text, "/no\uFFFD[2J\uFFFD: no such file or directory\n") {
		t.Errorf("%q", text)
	}
}
