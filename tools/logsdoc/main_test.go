package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xdspub/event"
)

const root = "../.."

func TestPage(t *testing.T) {
	want, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path(root)); err != nil || string(got) != string(want) {
		t.Errorf("docs/logs.md is not what go generate ./tools/logsdoc makes (%v)", err)
	}
}

// TestEvents: each event of package event is on the page, with a unique name and its texts, and the program logs it.
func TestEvents(t *testing.T) {
	logged := written(t)
	files := make(map[string]bool)
	names := make(map[string]string)
	for _, g := range groups {
		files[g.file] = true
		events, err := eventsOf(filepath.Join(root, "event", g.file))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if other := names[e.name]; other != "" {
				t.Errorf("%s and %s are both %s", other, e.typ, e.name)
			}
			names[e.name] = e.typ
			if e.name == "" || e.means == "" || strings.HasPrefix(e.means, e.typ) {
				t.Errorf("%s: no name, or a comment that does not begin with %q", e.typ, e.typ+" means that")
			}
			if strings.Contains(e.means, "or that ") || strings.Contains(e.means, "and that ") {
				t.Errorf("%s: %q is no whole sentence without %q", e.typ, e.means, "means that")
			}
			if !logged[e.typ] {
				t.Errorf("nothing logs %s", e.name)
			}
		}
	}
	if all, page := event.Names(), slices.Sorted(maps.Keys(names)); !slices.Equal(all, page) {
		t.Errorf("event.Names returns %q, and the page has %q", all, page)
	}
	for _, name := range sources(t, filepath.Join(root, "event")) {
		if base := filepath.Base(name); base != "event.go" && base != "history.go" && !files[base] {
			t.Errorf("event/%s is in no group of the page", base)
		}
	}
}

// written returns the types of package event of which the program makes values.
func written(t *testing.T) map[string]bool {
	types := map[string]bool{"Finding": true} // FindingOf
	for _, name := range sources(t, root) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if c, ok := n.(*ast.CompositeLit); ok {
				if s, ok := c.Type.(*ast.SelectorExpr); ok {
					if p, ok := s.X.(*ast.Ident); ok && p.Name == "event" {
						types[s.Sel.Name] = true
					}
				}
			}
			return true
		})
	}
	return types
}

// sources lists the Go files below a folder, without tests.
func sources(t *testing.T, dir string) (list []string) {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch name := e.Name(); {
		case err != nil:
			return err
		case e.IsDir() && path != dir && (strings.HasPrefix(name, ".") || name == "testdata"):
			return fs.SkipDir
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			list = append(list, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
