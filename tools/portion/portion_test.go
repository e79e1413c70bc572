package portion

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWhole checks that make soak PART=whole runs each test that calls Every.
func TestWhole(t *testing.T) {
	const root = "../.."
	script, err := os.ReadFile(filepath.Join(root, "scripts/soak"))
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`XDSPUB_WHOLE=1 .* -run '(.*)' -v \\\n(.*)\n`).FindSubmatch(script)
	if command == nil {
		t.Fatal("scripts/soak has no command with XDSPUB_WHOLE")
	}
	run, packages := regexp.MustCompile(string(command[1])), strings.Fields(string(command[2]))
	found := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !strings.HasSuffix(path, "_test.go") && !d.IsDir():
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."): // such as .git and .cache
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		tests, calls := callers(t, path)
		if len(calls) == 0 {
			return nil
		}
		found++
		if folder := "./" + filepath.ToSlash(filepath.Dir(strings.TrimPrefix(path, root+"/"))); !slices.Contains(packages, folder) {
			t.Errorf("%s calls portion.Every, and scripts/soak does not test %s", path, folder)
		}
		for _, name := range calls {
			if strings.HasPrefix(name, "Test") && !run.MatchString(name) {
				t.Errorf("%s: %s calls portion.Every, and scripts/soak does not run it", path, name)
			}
		}
		if !slices.ContainsFunc(tests, run.MatchString) {
			t.Errorf("%s calls portion.Every, and scripts/soak runs none of its tests", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Error("no test calls portion.Every")
	}
}

// callers returns the names of the tests of a file, and of the functions that call portion.Every.
func callers(t *testing.T, path string) (tests, calls []string) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), "portion.Every") {
		return nil, nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, data, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if strings.HasPrefix(f.Name.Name, "Test") {
			tests = append(tests, f.Name.Name)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Every" {
				if of, ok := s.X.(*ast.Ident); ok && of.Name == "portion" {
					calls = append(calls, f.Name.Name)
				}
			}
			return true
		})
	}
	return tests, calls
}
