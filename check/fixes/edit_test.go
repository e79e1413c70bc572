package fixes

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"xdspub/diag"
	"xdspub/tools/fixing"
)

// at returns an edit of the text from one place to another.
func at(line, column, endLine, endColumn int, text string) diag.Edit {
	return diag.Edit{Range: diag.Range{Position: diag.Position{File: "a", Line: line, Column: column}, End: diag.End{EndLine: endLine, EndColumn: endColumn}}, Text: text}
}

func TestEdit(t *testing.T) {
	for _, c := range []struct {
		text  string
		edits []diag.Edit
		want  string
	}{
		{"ab\ncd\n", []diag.Edit{at(1, 1, 1, 2, "X"), at(2, 2, 2, 3, "Y")}, "Xb\ncY\n"},
		{"ab\r\ncd\r\n", []diag.Edit{at(1, 2, 1, 3, "X"), at(2, 1, 2, 2, "Y")}, "aX\r\nYd\r\n"},
		{"\ufeffab", []diag.Edit{at(1, 1, 1, 2, "X")}, "\ufeffXb"},
		{"\ta: ü # é\n", []diag.Edit{at(1, 2, 1, 3, "X"), at(1, 5, 1, 6, "Y")}, "\tX: Y # é\n"},
		{"a: 😀b", []diag.Edit{at(1, 5, 1, 6, "X")}, "a: 😀X"},
		{"ab", []diag.Edit{at(1, 3, 1, 3, "X")}, "abX"},
		{"a\nb\n", []diag.Edit{at(3, 1, 3, 1, "X")}, "a\nb\nX"},
		{"a\nb\nc\n", []diag.Edit{at(1, 2, 3, 1, " ")}, "a c\n"},
		{"ab", []diag.Edit{at(1, 1, 1, 2, "X"), at(1, 2, 1, 3, "Y")}, "XY"},
		{"a\u2028b", []diag.Edit{at(1, 3, 1, 4, "X")}, "a\u2028X"}, // no line break of an editor
		{"a\xffb", []diag.Edit{at(1, 3, 1, 4, "X")}, "a\xffX"},
		{"ab", nil, "ab"},
	} {
		got, err := edit([]byte(c.text), c.edits)
		if string(got) != c.want || err != nil {
			t.Errorf("%q with %v: %q, %v; want %q", c.text, c.edits, got, err, c.want)
		}
	}
	for _, e := range []diag.Edit{at(3, 1, 3, 1, ""), at(1, 4, 1, 4, ""), at(1, 1, 2, 9, ""), at(0, 0, 0, 0, ""), at(1, 2, 1, 1, "")} {
		if got, err := edit([]byte("ab\ncd"), []diag.Edit{e}); !errors.Is(err, errNoSuchPlace) {
			t.Errorf("%v: %q, %v", e, got, err)
		}
	}
}

// TestEditAgrees compares edit with another implementation, on texts with characters of several bytes.
func TestEditAgrees(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var text strings.Builder
		for range random.IntN(12) {
			text.WriteString([]string{"a", "ü", "\n", "\r\n", "\t", "😀", "#"}[random.IntN(7)])
		}
		lines := strings.Split(text.String(), "\n")
		place := func() (line, column int) {
			line = random.IntN(len(lines))
			return line + 1, random.IntN(len([]rune(lines[line]))+1) + 1
		}
		line, column := place()
		endLine, endColumn := place()
		if endLine < line || endLine == line && endColumn < column {
			line, column, endLine, endColumn = endLine, endColumn, line, column
		}
		e := at(line, column, endLine, endColumn, "X\n")
		got, err := edit([]byte(text.String()), []diag.Edit{e})
		if want := fixing.Applied(t, text.String(), diag.Fix{Edits: []diag.Edit{e}}); string(got) != want || err != nil {
			t.Fatalf("%q with %v: %q, %v; want %q", text.String(), e, got, err, want)
		}
	}
}

// TestHasRoom: an edit that overlaps another edit waits for the next round.
func TestHasRoom(t *testing.T) {
	edits := []diag.Edit{at(1, 5, 1, 8, ""), at(2, 1, 4, 3, ""), at(5, 1, 5, 1, "")}
	for _, c := range []struct {
		edit diag.Edit
		want bool
	}{
		{at(1, 1, 1, 5, ""), true},
		{at(1, 8, 1, 9, ""), true},
		{at(1, 1, 1, 6, ""), false},
		{at(1, 5, 1, 8, ""), false},
		{at(1, 6, 1, 7, ""), false},
		{at(3, 1, 3, 1, ""), false},
		{at(4, 3, 4, 9, ""), true},
		{at(1, 1, 9, 1, ""), false},
		{at(5, 1, 5, 1, ""), false},
		{at(5, 1, 5, 4, ""), false},
		{at(6, 1, 6, 4, ""), true},
	} {
		if got := hasRoom(edits, c.edit); got != c.want {
			t.Errorf("%v: %v, want %v", c.edit, got, c.want)
		}
	}
	if got := fmt.Sprint(insert(edits, at(1, 9, 1, 9, "X"))[1].Text); got != "X" {
		t.Errorf("insert is not sorted: %q", got)
	}
}
