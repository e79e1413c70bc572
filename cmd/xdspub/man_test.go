package main

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// TestManual checks that the manual page has all commands and flags, and that installed tools for manual pages
// find no fault.
func TestManual(t *testing.T) {
	app := newApp(io.Discard, io.Discard)
	page := manual(app)
	for i, line := range strings.Split(page, "\n") {
		name, _, _ := strings.Cut(line, " ")
		switch name {
		case ".ad", ".nh", ".TH", ".SH", ".SS", ".TP", ".B", ".PP", ".EX", ".EE":
		default:
			if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
				t.Errorf("%d: %q is taken for a request", i+1, line)
			}
		}
	}
	for _, c := range app.Commands {
		for _, command := range append(c.Subcommands, c) {
			for _, r := range rowsOf(command) {
				if head, _ := rowHelp(r); !strings.Contains(page, escaped(head)) {
					t.Errorf("%s of %s is missing", head, command.Name)
				}
			}
		}
	}
	for _, line := range []string{`.SH "EXIT STATUS"`, `.SH "xdspub bootstrap envoy [options] [SRC]"`, `  xdspub render \-\-out /var/lib/xds config/`} {
		if !strings.Contains(page, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	for _, judge := range [][]string{
		{"groff", "-man", "-ww", "-Tutf8", "-z"},
		{"mandoc", "-T", "lint", "-W", "warning"},
	} {
		if _, err := exec.LookPath(judge[0]); err != nil {
			t.Logf("%s is not installed", judge[0])
			continue
		}
		cmd := exec.CommandContext(t.Context(), judge[0], judge[1:]...)
		cmd.Stdin = strings.NewReader(page)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		_ = cmd.Run() // the output tells all
		for line := range strings.Lines(said.String()) {
			if !strings.Contains(line, "missing date") { // the page of a build has no date
				t.Errorf("%q: %s", judge, line)
			}
		}
	}
}
