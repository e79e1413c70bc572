package policy_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/check/policy"
	"xdspub/diag"
)

func at(code, file string, s diag.Severity) diag.Diagnostic {
	return diag.Diagnostic{Code: code, Severity: s, Position: diag.Position{File: file, Line: 1}}
}

func texts(list diag.List) (texts []string) {
	for _, d := range list {
		texts = append(texts, fmt.Sprintf("%s %s %s", filepath.ToSlash(d.File), d.Severity, d.Code))
	}
	return texts
}

func TestApply(t *testing.T) {
	warning, info := policy.At(diag.Warning), policy.At(diag.Info)
	overrides := policy.Overrides{
		{Levels: map[string]policy.Level{"a": warning, "b": policy.Dropped}},
		{Files: []string{"legacy", "*.tmp.yaml"}, Levels: map[string]policy.Level{"a": policy.Dropped, "b": info}},
		{Files: []string{"legacy/new/*"}, Levels: map[string]policy.Level{"a": policy.Kept}},
	}
	list := diag.List{
		at("a", "tree/x.yaml", diag.Error), at("a", "tree/legacy/x.yaml", diag.Error), at("a", "tree/legacy/new/x.yaml", diag.Error),
		at("a", "tree/deep/x.tmp.yaml", diag.Error), at("a", "", diag.Error), at("a", "elsewhere/legacy/x.yaml", diag.Info),
		at("b", "tree/x.yaml", diag.Error), at("b", "tree/legacy/deep/x.yaml", diag.Warning), at("c", "tree/legacy/x.yaml", diag.Error),
	}
	before := fmt.Sprint(list)
	want := []string{
		"tree/x.yaml warning a", "tree/legacy/new/x.yaml error a", " warning a", "elsewhere/legacy/x.yaml warning a",
		"tree/legacy/deep/x.yaml info b", "tree/legacy/x.yaml error c",
	}
	if diff := cmp.Diff(want, texts(overrides.Apply(list, "tree"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if fmt.Sprint(list) != before {
		t.Error("the list has changed")
	}
	one := diag.List{at("a", "tree/legacy/x.tmp.yaml", diag.Error)}
	if got := overrides.Apply(one, filepath.Join("tree", "legacy", "x.tmp.yaml")); len(got) != 0 {
		t.Errorf("a tree of one file: %v", texts(got))
	}
}

func TestCodes(t *testing.T) {
	overrides := policy.Overrides{
		{Levels: map[string]policy.Level{"off": policy.Dropped, "mostly off": policy.Dropped, "warning": policy.At(diag.Warning), "error": policy.At(diag.Error), "on": policy.Kept}},
		{Files: []string{"x"}, Levels: map[string]policy.Level{"mostly off": policy.Kept, "off": policy.Dropped, "here": policy.Dropped}},
	}
	for name, c := range map[string]struct{ want, got []string }{
		"off":     {[]string{"off"}, overrides.Disabled()},
		"on":      {[]string{"error", "here", "mostly off", "on", "warning"}, overrides.Enabled()},
		"lowered": {[]string{"here", "mostly off", "off", "warning"}, overrides.Lowered()},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestSubCodes: an override of a sub-code wins over an override of its rule, in whatever order they stand.
func TestSubCodes(t *testing.T) {
	overrides := policy.Overrides{
		{Levels: map[string]policy.Level{"a": policy.Dropped, "a/on": policy.Kept, "b/off": policy.Dropped, "c": policy.Dropped}},
		{Files: []string{"legacy"}, Levels: map[string]policy.Level{"a": policy.At(diag.Info), "a/here": policy.At(diag.Warning), "b": policy.At(diag.Info)}},
		{Files: []string{"other"}, Levels: map[string]policy.Level{"a/gone": policy.Dropped}},
	}
	var list diag.List
	for _, file := range []string{"tree/x.yaml", "tree/legacy/x.yaml"} {
		for _, code := range []string{"a", "a/on", "a/here", "a/gone", "b/off", "b/more", "c/x"} {
			list = append(list, at(code, file, diag.Error))
		}
	}
	want := []string{
		"tree/x.yaml error a/on", "tree/x.yaml error b/more",
		"tree/legacy/x.yaml info a", "tree/legacy/x.yaml error a/on", "tree/legacy/x.yaml warning a/here", "tree/legacy/x.yaml info a/gone", "tree/legacy/x.yaml info b/more",
	}
	if diff := cmp.Diff(want, texts(overrides.Apply(list, "tree"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, c := range map[string]struct{ want, got []string }{
		"off":     {[]string{"b/off", "c"}, overrides.Disabled()},
		"on":      {[]string{"a", "a/gone", "a/here", "a/on", "b"}, overrides.Enabled()},
		"lowered": {[]string{"a", "a/gone", "a/here", "b", "b/off", "c"}, overrides.Lowered()},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestParseLevel(t *testing.T) {
	for _, word := range policy.Levels {
		if _, err := policy.ParseLevel(word); err != nil {
			t.Error(err)
		}
	}
	for word, want := range map[string]policy.Level{"false": policy.Dropped, "true": policy.Kept, "info": policy.At(diag.Info)} {
		if got, err := policy.ParseLevel(word); err != nil || got != want {
			t.Errorf("%s: %v, %v", word, got, err)
		}
	}
	if _, err := policy.ParseLevel("Warn"); err == nil {
		t.Error("Warn is read as a level")
	}
}
