package diag

import (
	"fmt"
	"strings"
	"testing"
)

// TestBounded: many errors leave room for warnings, and the reverse. A finding reports that findings were left out.
func TestBounded(t *testing.T) {
	b := NewBounded(3)
	for i := range 5 {
		b.Add(Diagnostic{Code: "w", Severity: Warning, Message: fmt.Sprint(i)})
	}
	if !b.HasRoom(Error) || b.HasRoom(Warning) {
		t.Error("the warnings took the room of errors")
	}
	part := NewBounded(3)
	part.Add(Diagnostic{Code: "e", Message: "5"}, Diagnostic{Code: "e", Message: strings.Repeat("x", 2<<10)}, Diagnostic{Code: "e", Message: "6"})
	b.Take(&part)
	var got []string
	for _, d := range b.List(Position{File: "a.yaml"}, "in this file") {
		got = append(got, strings.TrimRight(d.String(), "x"))
	}
	want := `warning: 0 [w]
warning: 1 [w]
warning: 2 [w]
error: 5 [e]
error: ` + strings.Repeat("x", 2<<10) + ` [e]
a.yaml: error: too many errors in this file: only 2 are listed [too-many-findings]
a.yaml: warning: too many warnings in this file: only 3 are listed [too-many-findings]`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}
