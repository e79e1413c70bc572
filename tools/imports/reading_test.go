package imports

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inOrder are packages whose files can be read one after another.
var inOrder = []string{"source/decode", "source/load", "source/settingsfile", "source/syntax"}

// mostFiles bounds the files with methods of one type.
const mostFiles = 4

// TestReadingOrder: the files of a package have an order in which at most a tenth of the references leads to an
// earlier file, and the methods of a type are in a few files.
func TestReadingOrder(t *testing.T) {
	for _, p := range listed(t) {
		if !slices.Contains(inOrder, p.name()) {
			continue
		}
		files := token.NewFileSet()
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, file)
		}
		r := referencesOf(files, parsed)
		order := r.order()
		up := r.up(order)
		t.Logf("%s: %d references, %d of them up, in the order %v", p.name(), r.count(), len(up), order)
		if len(up)*10 > r.count() {
			t.Errorf("%s: %d of %d references between files lead up: %q", p.name(), len(up), r.count(), up)
		}
		for typ, in := range methodsOf(files, parsed) {
			if len(in) > mostFiles {
				t.Errorf("%s: %s has methods in %d files: %v", p.name(), typ, len(in), slices.Sorted(maps.Keys(in)))
			}
		}
	}
}

// references are the files that each file of a package refers to.
type references map[string]map[string]bool

// referencesOf returns the references between files. It does not load other packages, so that their types are
// unknown.
func referencesOf(files *token.FileSet, parsed []*ast.File) references {
	uses := make(map[*ast.Ident]types.Object)
	conf := types.Config{Importer: importer.Default(), Error: func(error) {}}
	pkg, _ := conf.Check("p", files, parsed, &types.Info{Uses: uses})
	r := make(references)
	for _, file := range parsed {
		r[fileOf(files, file.Pos())] = make(map[string]bool)
	}
	for ident, object := range uses {
		if object.Pkg() != pkg || isLocal(object) {
			continue
		}
		if from, to := fileOf(files, ident.Pos()), fileOf(files, object.Pos()); from != to {
			r[from][to] = true
		}
	}
	return r
}

// isLocal reports whether an object is declared in a function.
func isLocal(o types.Object) bool {
	switch o := o.(type) {
	case *types.Func:
		return false
	case *types.Var:
		return !o.IsField() && o.Parent() != o.Pkg().Scope()
	}
	return o.Parent() != o.Pkg().Scope()
}

func fileOf(files *token.FileSet, at token.Pos) string {
	return filepath.Base(files.Position(at).Filename)
}

func (r references) count() (n int) {
	for _, to := range r {
		n += len(to)
	}
	return n
}

// up returns the references that lead to an earlier file of an order.
func (r references) up(order []string) (list []string) {
	for i, from := range order {
		for _, above := range order[:i] {
			if r[from][above] {
				list = append(list, from+" → "+above)
			}
		}
	}
	return list
}

// order returns an order of the files in which few references lead to an earlier file. It moves each file to its
// best place among the others, until no file has a better place.
func (r references) order() []string {
	order := slices.Sorted(maps.Keys(r))
	for best := r.count() + 1; len(r.up(order)) < best; {
		best = len(r.up(order))
		for _, file := range slices.Sorted(maps.Keys(r)) {
			order = r.placed(slices.DeleteFunc(order, func(other string) bool { return other == file }), file)
		}
	}
	return order
}

// placed returns an order with a file at its best place.
func (r references) placed(order []string, file string) []string {
	up, fewest, at := 0, 0, 0
	for i, other := range order {
		if r[other][file] {
			up--
		}
		if r[file][other] {
			up++
		}
		if up < fewest {
			fewest, at = up, i+1
		}
	}
	return slices.Insert(order, at, file)
}

// methodsOf returns the files that have methods of each type.
func methodsOf(files *token.FileSet, parsed []*ast.File) map[string]map[string]bool {
	methods := make(map[string]map[string]bool)
	for _, file := range parsed {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			typ := strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*")
			if methods[typ] == nil {
				methods[typ] = make(map[string]bool)
			}
			methods[typ][fileOf(files, file.Pos())] = true
		}
	}
	return methods
}
