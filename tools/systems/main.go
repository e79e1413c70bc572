// Systems checks the types of packages for another operating system: systems GOOS PACKAGE…. Systems prints the errors,
// and exits 1 if there are errors.
//
// Systems skips the function bodies of other modules, and so takes seconds. go vet would compile all modules, such as
// the API of Envoy, for the other operating system.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: systems GOOS PACKAGE…")
		os.Exit(2)
	}
	failed, err := check(".", os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "systems:", err)
		os.Exit(2)
	}
	for _, text := range failed {
		fmt.Println(text)
	}
	if len(failed) > 0 {
		os.Exit(1)
	}
}

// check returns the errors in the packages of the module at root, and in their tests.
func check(root, system string, patterns []string) (failed []string, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	all, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedTypesSizes,
		Dir:        root,
		BuildFlags: []string{"-tags=disable_pgv"}, // leaves out the generated validation, which is half of the API of Envoy
		Env:        append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
		Tests:      true,
		ParseFile: func(files *token.FileSet, path string, text []byte) (*ast.File, error) {
			f, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
			if f != nil && !strings.HasPrefix(path, root+string(filepath.Separator)) {
				for _, d := range f.Decls {
					if d, ok := d.(*ast.FuncDecl); ok {
						d.Body = nil
					}
				}
			}
			return f, err
		},
	}, patterns...)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	for _, p := range all {
		if strings.HasSuffix(p.ID, ".test") {
			continue // go test generates this main package outside of root
		}
		for _, e := range p.Errors {
			if text := e.Error(); !seen[text] {
				seen[text] = true
				failed = append(failed, text)
			}
		}
	}
	return failed, nil
}
