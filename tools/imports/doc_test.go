package imports

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// TestDocComments: each exported name has a comment, except the methods Error and String.
func TestDocComments(t *testing.T) {
	for _, p := range listed(t) {
		if p.Name == "main" {
			continue
		}
		files := token.NewFileSet()
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, file)
		}
		if len(parsed) == 0 { // the package has only tests
			continue
		}
		documented, err := doc.NewFromFiles(files, parsed, p.ImportPath)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range undocumented(documented) {
			t.Errorf("%s.%s has no comment", p.name(), name)
		}
	}
}

// undocumented returns the exported names without a comment. The comment of a group counts for all its names.
func undocumented(p *doc.Package) (names []string) {
	values := func(list []*doc.Value) {
		for _, v := range list {
			for _, spec := range v.Decl.Specs {
				if s := spec.(*ast.ValueSpec); v.Doc == "" && s.Doc == nil && s.Comment == nil {
					names = append(names, exported(s.Names)...)
				}
			}
		}
	}
	funcs := func(of string, list []*doc.Func) {
		for _, f := range list {
			if f.Doc == "" && (f.Recv == "" || f.Name != "Error" && f.Name != "String") {
				names = append(names, of+f.Name)
			}
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs("", p.Funcs)
	for _, t := range p.Types {
		if t.Doc == "" {
			names = append(names, t.Name)
		}
		values(t.Consts)
		values(t.Vars)
		funcs("", t.Funcs)
		funcs(t.Name+".", t.Methods)
	}
	return names
}

func exported(idents []*ast.Ident) (names []string) {
	for _, i := range idents {
		if i.IsExported() {
			names = append(names, i.Name)
		}
	}
	return names
}
