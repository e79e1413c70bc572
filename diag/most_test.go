package diag_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/diag"
)

func TestMost(t *testing.T) {
	var l diag.List
	for _, code := range []string{"w1", "e1", "w2", "e2", "e3"} {
		d := diag.Diagnostic{Code: code}
		if code[0] == 'w' {
			d.Severity = diag.Warning
		}
		l = append(l, d)
	}
	for n, want := range map[int][]string{
		0: {"w1", "e1", "w2", "e2", "e3"},
		1: {"e1"},
		3: {"e1", "e2", "e3"},
		4: {"w1", "e1", "e2", "e3"},
		9: {"w1", "e1", "w2", "e2", "e3"},
	} {
		most, left := l.Most(n)
		var got []string
		for _, d := range most {
			got = append(got, d.Code)
		}
		if diff := cmp.Diff(want, got); diff != "" || left != len(l)-len(got) {
			t.Errorf("Most(%d): %d left (-want +got):\n%s", n, left, diff)
		}
	}
}
