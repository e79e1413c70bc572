package baseline_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/diag"
	"xdspub/report"
	"xdspub/report/baseline"
)

func finding(file, message string, line int) diag.Diagnostic {
	return diag.Diagnostic{Code: "some-rule", Position: diag.Position{File: file, Line: line}, Resource: diag.Resource{Type: "t", Name: "r"}, Message: message}
}

func written(t *testing.T, root *report.Root, lists ...diag.List) (path, text string) {
	t.Helper()
	var b bytes.Buffer
	if err := baseline.Write(&b, lists, root); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "baseline.json")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path, b.String()
}

func newRoot(t *testing.T) *report.Root {
	t.Helper()
	root, err := report.NewRoot("/srv")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// TestLeft: findings of the baseline are known even if they move, but not if there are more of them than before.
func TestLeft(t *testing.T) {
	root := newRoot(t)
	one, two, three := finding("/srv/a/x.yaml", "one", 3), finding("/srv/b/y.yaml", "<two>", 1), finding("/srv/b/y.yaml", "three", 2)
	path, _ := written(t, root, diag.List{one, one}, diag.List{two, three})
	b, err := baseline.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	one.Line = 30
	full := diag.Diagnostic{Code: diag.TooMany.Name, Message: "too many"}
	got := b.Left(diag.List{one, one, one, three, full}, root)
	if diff := cmp.Diff(diag.List{one, full}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if b.Gone([]string{"b"}) != 1 || b.Gone([]string{"."}) != 1 || b.Gone([]string{"a"}) != 0 || b.Gone([]string{"b/y"}) != 0 {
		t.Errorf("gone %d", b.Gone([]string{"b"}))
	}
}

// TestWritten: the file does not depend on the order of the findings, and has a line for each finding.
func TestWritten(t *testing.T) {
	root := newRoot(t)
	_, one := written(t, root, diag.List{finding("/srv/a", "x", 1), finding("/srv/b", "<y>", 2)})
	_, other := written(t, root, diag.List{finding("/srv/b", "<y>", 7)}, diag.List{finding("/srv/a", "x", 9)})
	if diff := cmp.Diff(one, other); diff != "" {
		t.Errorf("(-one +other):\n%s", diff)
	}
	if n := strings.Count(one, "\n"); n != 7 || !strings.Contains(one, "\n    {\"file\":\"b\",\"code\":\"some-rule\",\"resource\":{\"type\":\"t\",\"name\":\"r\"},\"message\":\"<y>\",") {
		t.Errorf("%d lines:\n%s", n, one)
	}
	path, none := written(t, root)
	if _, err := baseline.Read(path); err != nil || none != "{\n  \"baseline\": 1,\n  \"findings\": []\n}\n" {
		t.Errorf("%v\n%s", err, none)
	}
	if err := baseline.Write(&bytes.Buffer{}, []diag.List{{{Code: diag.TooMany.Name}}}, root); err == nil {
		t.Error("a list that is not all makes a baseline")
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"":                              "the file is cut off",
		`{"baseline": 1, "findings": [`: "the file is cut off",
		`{"baseline": 2, "findings": {"new": 1}}`: "it has form 2, and this xdspub reads form 1",
		`{"findings": []}`:                        `it has no "baseline"`,
		`[]`:                                      "cannot unmarshal array",
		`{"baseline": 1, "findings": [{}]}`:       "a finding has no fingerprint",
		`{"baseline": 1, "findings": [{"x": 1}]}`: `unknown field "x"`,
		`{"baseline": 1, "findings": []} x`:       "more text follows the JSON object",
		`{"baseline": 1, "findings": [` + strings.Repeat("[", 100_000): "is not a baseline",
	} {
		path := filepath.Join(dir, "baseline.json")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := baseline.Read(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", text, err, want)
		}
	}
	large := filepath.Join(dir, "large.json")
	f, err := os.Create(large)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(baseline.MaxBytes + 1); err != nil {
		t.Fatal(err)
	}
	f.Close()
	for _, path := range []string{large, dir, filepath.Join(dir, "none")} {
		if _, err := baseline.Read(path); err == nil || !strings.Contains(err.Error(), "read the baseline: ") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
