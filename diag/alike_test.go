package diag_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/diag"
)

// TestWithoutAlike: of many findings that differ only in names, five are shown. Findings that differ in words,
// severity or code are not of one kind, and a few findings of a kind are all shown.
func TestWithoutAlike(t *testing.T) {
	var list diag.List
	for i := range 15 {
		d := diag.Diagnostic{Code: "unknown", Position: at(fmt.Sprintf("%d.yaml", 10+i/2), i+1, 1), Message: fmt.Sprintf(`unknown cluster "a\"%d", did you mean "b"?`, i)}
		list = append(list, d)
		if i < 10 {
			d.Severity = diag.Warning
			list = append(list, d)
			d.Code = "other"
			list = append(list, d)
			d.Message = fmt.Sprintf("unknown cluster %d", i)
			list = append(list, d)
		}
	}
	few, left := list.WithoutAlike()
	if len(few) != len(list)-10 {
		t.Errorf("%d of %d are shown", len(few), len(list))
	}
	if diff := cmp.Diff([]diag.Alike{{Code: "unknown", At: at("10.yaml", 1, 1), Left: 10, Files: 6}}, left); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := left[0].String(); text != "… and 10 more like 10.yaml:1:1 in 6 files [unknown]" {
		t.Error(text)
	}
	if few, left := list[:10].WithoutAlike(); len(few) != 10 || left != nil {
		t.Error(few, left)
	}
}
