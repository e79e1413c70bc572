package diag_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"xdspub/diag"
	"xdspub/tools/golden"
)

// sources are the lines of the files in findings.
var sources = map[string][]string{
	"a.yaml":   {"name: a", "type: STRICT_DSN", "\ttabs:\tinside", "größe: 大きさ", "", "red \x1b[31m and \u202eback\u202c\x07\x7f\u0085 é"},
	"min.json": {strings.Repeat("x", 3000) + "HERE" + strings.Repeat("y", 3000), strings.Repeat("é", 90) + "HERE" + strings.Repeat("y", 300)},
	"key.yaml": {"private_key: hunter2"},
}

func line(p diag.Position) (string, bool) {
	lines := sources[p.File]
	if p.Line > len(lines) {
		return "", false
	}
	return lines[p.Line-1], true
}

var findings = diag.List{
	{Code: "unknown-enum-value", Position: at("a.yaml", 2, 7), End: diag.End{EndLine: 2, EndColumn: 17}, Resource: diag.Resource{Type: "type.googleapis.com/x.Cluster", Name: "a"},
		Path: "type", Message: `type has no value "STRICT_DSN"`, Help: "<write> STRICT_DNS & no other", Fixes: []diag.Fix{
			{Title: "write STRICT_DNS", Edits: []diag.Edit{{Range: diag.Range{Position: at("a.yaml", 2, 7), End: diag.End{EndLine: 2, EndColumn: 17}}, Text: "STRICT_DNS"}}},
		}},
	{Code: "with-related", Severity: diag.Warning, Position: at("a.yaml", 1, 1), Message: "first place", Related: []diag.Related{
		{Position: at("b.yaml", 3, 4), Message: "second here"},
		{Position: at("b.yaml", 0, 0), Message: "a whole file"},
		{Message: "no place"},
	}},
	{Code: "remark", Severity: diag.Info, Position: at("a.yaml", 3, 8), Message: "behind tabs"},
	{Code: "wide", Position: at("a.yaml", 4, 8), Message: "behind umlauts"},
	{Code: "at-the-end", Position: at("a.yaml", 1, 8), Message: "one behind the last character"},
	{Code: "behind-the-end", Position: at("a.yaml", 1, 80), Message: "the file has changed"},
	{Code: "empty-line", Position: at("a.yaml", 5, 1), Message: "nothing to show"},
	{Code: "control", Position: at("a.yaml", 6, 30), Message: "control \x1b[31m characters\nand a line", Help: "\x1b]0;title\x07", Related: []diag.Related{{Position: at("\x1b[2J.yaml", 1, 1), Message: "\u202e"}}},
	{Code: "long", Position: at("min.json", 1, 3001), Message: "in the middle of a long line"},
	{Code: "long-at-start", Position: at("min.json", 1, 3), Message: "at its start"},
	{Code: "long-at-end", Position: at("min.json", 1, 6005), Message: "at its end"},
	{Code: "long-behind", Position: at("min.json", 1, 99999), Message: "far behind it"},
	{Code: "long-wide", Position: at("min.json", 2, 91), Message: "behind ninety umlauts"},
	{Code: "sensitive", Position: at("key.yaml", 1, 14), Message: "the line is not shown", Sensitive: true},
	{Code: "no-column", Position: at("a.yaml", 1, 0), Message: "only a line"},
	{Code: "no-line", Position: at("a.yaml", 0, 0), Message: "only a file"},
	{Code: "no-place", Message: "of no file"},
	{Code: "no-such-line", Position: at("a.yaml", 70, 1), Message: "no such line"},
	{Code: "no-such-file", Position: at("none.yaml", 1, 1), Message: "no such file"},
}

func TestWriteText(t *testing.T) {
	for name, o := range map[string]diag.TextOptions{
		"text.golden":       {Line: line},
		"text-color.golden": {Line: line, Color: true},
		"text-lines.golden": {},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := diag.WriteText(&b, findings, o); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(b.String(), "hunter2") {
				t.Error("a sensitive line is printed")
			}
			if i := strings.IndexFunc(b.String(), func(r rune) bool { return r < ' ' && r != '\n' && (r != 0x1b || !o.Color) }); i >= 0 {
				t.Errorf("a control character is printed: %q", b.String()[i:])
			}
			golden.Compare(t, name, b.String())
		})
	}
}

func TestWriteJSON(t *testing.T) {
	var b strings.Builder
	if err := diag.WriteJSON(&b, findings[:2], diag.Summary{Errors: 1, Warnings: 2, Files: 3, Resources: 4}); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "json.golden", b.String())
	b.Reset()
	if err := diag.WriteJSON(&b, nil, diag.Summary{}); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "json-empty.golden", b.String())
}

// TestNoNull: no list in the JSON of a finding is null.
func TestNoNull(t *testing.T) {
	b, err := json.Marshal(diag.Diagnostic{})
	if err != nil || strings.Contains(string(b), "null") {
		t.Errorf("%s, %v", b, err)
	}
}

// full is a writer that always fails.
type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteFails(t *testing.T) {
	if err := diag.WriteText(full{}, findings, diag.TextOptions{}); !errors.Is(err, errFull) {
		t.Errorf("text: %v", err)
	}
	if err := diag.WriteJSON(full{}, findings, diag.Summary{}); !errors.Is(err, errFull) {
		t.Errorf("json: %v", err)
	}
}
