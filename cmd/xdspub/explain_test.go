package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestExplain checks that xdspub explain knows each code of xdspub rules, with its severity and its summary.
func TestExplain(t *testing.T) {
	command := func(args ...string) string {
		var out, errs bytes.Buffer
		if status := run(append([]string{"xdspub"}, args...), &out, &errs); status != 0 {
			t.Fatalf("%q: exit status %d\n%s", args, status, &errs)
		}
		return out.String()
	}
	explained := 0
	for line := range strings.Lines(command("rules")) {
		words := strings.Fields(line)
		if len(words) < 3 {
			t.Fatalf("a line of xdspub rules is %q", line)
		}
		code, severity, summary := words[0], words[1], strings.Join(words[2:], " ")
		if strings.Contains(code, "/") {
			continue
		}
		text := command("explain", code)
		if !strings.HasPrefix(text, code+" ("+severity+")\n") || !strings.Contains(text, summary) || strings.Count(text, "\n") < 5 {
			t.Errorf("xdspub explain %s prints\n%s", code, text)
		}
		explained++
	}
	if explained < 20 {
		t.Errorf("%d codes are explained", explained)
	}
}
