// Package fixing tries the fixes of findings, for tests: Try applies each fix to the source, and
// judges the source again.
package fixing

import (
	"os"
	"strings"
	"testing"

	"xdspub/diag"
)

// Try applies each fix of the findings by itself, and judges the source again. The finding must be gone, each
// file must still be readable, and the text that the fix wrote must not be an error itself. A finding that
// asks "did you mean" must have a fix, unless without reports true for the finding. Try returns the number
// of fixes.
func Try(t testing.TB, found diag.List, without func(diag.Diagnostic) bool, judge func() diag.List) (tried int) {
	t.Helper()
	for _, d := range found {
		if strings.HasPrefix(d.Help, "did you mean") && len(d.Fixes) == 0 && !without(d) {
			t.Errorf("%s\n%s: there is no fix", d, d.Help)
		}
		for _, fix := range d.Fixes {
			tried++
			restore := Apply(t, fix)
			after := judge()
			restore()
			if count(after, d) >= count(found, d) {
				t.Errorf("%s\nis still there after: %s: %v", d, fix.Title, fix.Edits)
			}
			for _, other := range after {
				if (unreadable(other) || wrote(fix, other)) && count(found, other) == 0 {
					t.Errorf("%s\nafter: %s: %v\n%s", d, fix.Title, fix.Edits, other)
				}
			}
		}
	}
	return tried
}

// wrote reports whether d is an error in the text that a fix wrote, and has no other place.
func wrote(fix diag.Fix, d diag.Diagnostic) bool {
	e := fix.Edits[0]
	begins := d.File == e.File && d.Line == e.Line && d.Column <= e.Column
	return d.Severity == diag.Error && len(d.Related) == 0 && begins && (d.EndLine > e.Line || d.EndColumn >= e.Column)
}

// count counts the findings of a list that are about the same place as d, in the same words.
func count(list diag.List, d diag.Diagnostic) (n int) {
	for _, other := range list {
		if other.Code == d.Code && other.Message == d.Message && other.Line == d.Line && other.File == d.File {
			n++
		}
	}
	return n
}

func unreadable(d diag.Diagnostic) bool {
	return d.Code == "invalid-syntax" || d.Code == "duplicate-key" || d.Code == "invalid-value"
}

// Apply applies a fix on disk. restore undoes the fix.
func Apply(t testing.TB, fix diag.Fix) (restore func()) {
	t.Helper()
	name := fix.Edits[0].File
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	write(t, name, []byte(Applied(t, string(text), fix)))
	return func() { write(t, name, text) }
}

// Applied returns the text of the one file that a fix is for after the fix.
func Applied(t testing.TB, text string, fix diag.Fix) string {
	t.Helper()
	if len(fix.Edits) != 1 {
		t.Fatalf("the fix has %d edits, and Applied handles only one", len(fix.Edits))
	}
	e := fix.Edits[0]
	from, to := offset([]byte(text), e.Line, e.Column), offset([]byte(text), e.EndLine, e.EndColumn)
	if from < 0 || to < from {
		t.Fatalf("the file does not have the range %v", e.Range)
	}
	return text[:from] + e.Text + text[to:]
}

func write(t testing.TB, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Text returns the text in a range of a file.
func Text(t testing.TB, r diag.Range) string {
	t.Helper()
	text, err := os.ReadFile(r.File)
	if err != nil {
		t.Fatal(err)
	}
	from, to := offset(text, r.Line, r.Column), offset(text, r.EndLine, r.EndColumn)
	if from < 0 || to < from {
		t.Errorf("%v is no range of the file", r)
		return ""
	}
	return string(text[from:to])
}

// offset returns the byte offset of a line and column, or -1 if the text has no such place. offset counts as
// an editor does, and shares no code with the code under test.
func offset(text []byte, line, column int) int {
	rest := strings.TrimPrefix(string(text), "\ufeff")
	at := len(text) - len(rest)
	for n, content := range strings.SplitAfter(rest, "\n") {
		if n+1 < line {
			at += len(content)
			continue
		}
		runes := []rune(content)
		if column < 1 || column > len(runes)+1 {
			return -1
		}
		return at + len(string(runes[:column-1]))
	}
	return -1
}
