package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

func TestPage(t *testing.T) {
	want, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(page(root)); err != nil || string(got) != string(want) {
		t.Errorf("docs/protocol.md is not what go generate ./tools/protocoldoc makes (%v)", err)
	}
}

// TestShown: each sentence about a server has a test or a script, and these tests exist.
func TestShown(t *testing.T) {
	sections, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	tests := make(map[string]map[string]bool) // by folder
	for _, s := range sections {
		for _, x := range s.list {
			if !x.ofClients && len(x.tests)+len(x.scripts) == 0 {
				t.Errorf("nothing shows %s: %s", x.id, x.text)
			}
			for _, test := range x.tests {
				i := strings.LastIndex(test, ".")
				folder, name := test[:i], test[i+1:]
				if tests[folder] == nil {
					tests[folder] = testsOf(t, folder)
				}
				if !tests[folder][name] {
					t.Errorf("%s: there is no test %s", x.id, test)
				}
			}
		}
	}
}

// testsOf returns the tests and fuzz targets of a folder.
func testsOf(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}
