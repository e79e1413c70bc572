package main

import (
	"bytes"
	"io"
	"os"
	"testing"

	"xdspub/cmd/settings"
)

// TestMaxFindings checks that a terminal shows 100 findings without --max-findings. /dev/null counts as a
// terminal. (The pseudo terminals of the scripts lose the last output.)
func TestMaxFindings(t *testing.T) {
	terminal, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	for _, test := range []struct {
		args []string
		to   io.Writer
		want int
	}{
		{nil, terminal, 100},
		{nil, &bytes.Buffer{}, 0},
		{[]string{"--max-findings", "7"}, terminal, 7},
		{[]string{"--max-findings", "0"}, terminal, 0},
		{[]string{"--max-findings", "7"}, &bytes.Buffer{}, 7},
	} {
		line := commandLine{command: validateCommand()}
		if err := line.read(test.args); err != nil {
			t.Fatal(err)
		}
		s, err := settings.New(rowsOf(line.command), line.given)
		if err != nil {
			t.Fatal(err)
		}
		if got := maxFindings(&call{Settings: s}, test.to); got != test.want {
			t.Errorf("%v to %T: %d, want %d", test.args, test.to, got, test.want)
		}
	}
}
