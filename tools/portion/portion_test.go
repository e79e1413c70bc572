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

// TestWhole checks that make soak PART=whole runs each test that calls Every, itself or by a function of its package.
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
	found := false
	for folder, functions := range testFunctions(t, root) {
		for name := range functions {
			if !strings.HasPrefix(name, "Test") || !functions.reach(name, "portion.Every") {
				continue
			}
			found = true
			if !slices.Contains(packages, "./"+folder) || !run.MatchString(name) {
				t.Errorf("%s in %s calls portion.Every, and scripts/soak does not run it", name, folder)
			}
		}
	}
	if !found {
		t.Error("no test calls portion.Every")
	}
}

// callees has the names that each function of a package uses. A name of another package is "package.Name".
type callees map[string][]string

// reach reports whether a function calls another function, itself or by functions of its package.
func (c callees) reach(from, to string) bool {
	seen := map[string]bool{from: true}
	for next := []string{from}; len(next) > 0; next = next[1:] {
		for _, name := range c[next[0]] {
			if name == to {
				return true
			}
			if !seen[name] {
				seen[name] = true
				next = append(next, name)
			}
		}
	}
	return false
}

// testFunctions returns the functions of the test files below a directory, by folder. A method has the name of the
// method alone.
func testFunctions(t *testing.T, root string) map[string]callees {
	t.Helper()
	found := make(map[string]callees)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."): // such as .git and .cache
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(strings.TrimPrefix(path, root+"/")))
		if found[folder] == nil {
			found[folder] = make(callees)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				found[folder][f.Name.Name] = append(found[folder][f.Name.Name], namesIn(f)...)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// namesIn returns the identifiers and selectors in a function.
func namesIn(f *ast.FuncDecl) (names []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok {
				names = append(names, of.Name+"."+n.Sel.Name)
			}
			names = append(names, n.Sel.Name)
		case *ast.Ident:
			names = append(names, n.Name)
		}
		return true
	})
	return names
}
