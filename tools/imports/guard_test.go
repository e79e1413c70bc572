package imports

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
)

// unguarded are the functions that run on goroutines of their own without a guard, by file and source text.
var unguarded = map[string]string{
	"internal/parallel/parallel.go: work":                                "keeps the panic for Run",
	"cmd/xdspub/watch.go: stop":                                          "ends a context, which calls no function of xdspub",
	"serve/front.go: cancel":                                             "ends a context, which calls no function of xdspub",
	"serve/front.go: f.grpc.Stop":                                        "a function of the library",
	"internal/grpcdial/grpcdial.go: func() { plain.Close() }":            "a method of the library",
	"envoy/session.go: func() { _ = conn.SetDeadline(time.Unix(1, 0)) }": "a method of the library",
	"internal/parallel/group.go: func() { if e := crash.Try(f); e != nil { g.mu.Lock() defer g.mu.Unlock() if g.crashed == nil { g.crashed = e } } }": "keeps the panic for Wait",
}

// TestGoroutinesAreGuarded checks that each function that begins a goroutine, or runs on a goroutine of a timer, goes
// through package crash or a parallel.Group: the panic of another goroutine would end the process, and its Envoys
// would get no further change.
func TestGoroutinesAreGuarded(t *testing.T) {
	met := make(map[string]bool)
	for _, p := range listed(t) {
		if !isProduct(p) || p.name() == "internal/crash" {
			continue
		}
		for _, name := range p.GoFiles {
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range started(file) {
				of := fmt.Sprintf("%s/%s: %s", p.name(), name, textOf(files, f))
				if unguarded[of] != "" {
					met[of] = true
				} else if !isGuarded(f) {
					t.Errorf("%s: a panic of this function ends the process: start the function by crash.Guard, crash.Again or a parallel.Group: %s", files.Position(f.Pos()), of)
				}
			}
		}
	}
	for of := range unguarded {
		if !met[of] {
			t.Errorf("nothing starts %s any more: remove the line", of)
		}
	}
}

// started returns the functions that a file starts on goroutines of their own: in a go statement, by the method Go of
// another type than parallel.Group, and by a timer or a context that ends.
func started(file *ast.File) (list []ast.Expr) {
	groups := groupsOf(file)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			list = append(list, n.Call.Fun)
		case *ast.CallExpr:
			method, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || len(n.Args) == 0 {
				return true
			}
			switch receiver, _ := method.X.(*ast.Ident); {
			case method.Sel.Name == "Go" && (receiver == nil || !slices.Contains(groups, receiver.Name)), method.Sel.Name == "AfterFunc":
				list = append(list, n.Args[len(n.Args)-1])
			}
		}
		return true
	})
	return list
}

// groupsOf returns the names of the variables of the type parallel.Group.
func groupsOf(file *ast.File) (names []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && isOf(v.Type, "parallel", "Group") {
			for _, name := range v.Names {
				names = append(names, name.Name)
			}
		}
		return true
	})
	return names
}

// isOf reports whether an expression is a name of a package.
func isOf(e ast.Expr, pkg string, names ...string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg && slices.Contains(names, s.Sel.Name)
}

// isGuarded reports whether a function is the result of crash.Guard or crash.Again, or begins with
// defer crash.Catch(…).
func isGuarded(f ast.Expr) bool {
	switch f := f.(type) {
	case *ast.CallExpr:
		return isOf(f.Fun, "crash", "Guard", "Again")
	case *ast.FuncLit:
		if len(f.Body.List) > 0 {
			d, ok := f.Body.List[0].(*ast.DeferStmt)
			return ok && isOf(d.Call.Fun, "crash", "Catch")
		}
	}
	return false
}

// textOf returns the source text of an expression in one line.
func textOf(files *token.FileSet, e ast.Expr) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, files, e); err != nil {
		return err.Error()
	}
	return string(bytes.Join(bytes.Fields(b.Bytes()), []byte(" ")))
}

// TestGuardsAreFound checks that TestGoroutinesAreGuarded finds each way to start a function.
func TestGuardsAreFound(t *testing.T) {
	const text = `package p
func f() {
	var g parallel.Group
	g.Go(f)
	go f()
	go func() { f() }()
	w.Go(f)
	o.group.Go(func() { f() })
	time.AfterFunc(d, f)
	context.AfterFunc(ctx, func() { f() })
	go crash.Guard(f, log.Crashed)()
	w.Go(crash.Again(done, f, log.Crashed))
	w.Go(func() (err error) { defer crash.Catch(&err); return nil })
}`
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "p.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	var bare []int
	for _, f := range started(file) {
		if !isGuarded(f) {
			bare = append(bare, files.Position(f.Pos()).Line)
		}
	}
	if want := []int{5, 6, 7, 8, 9, 10}; !slices.Equal(bare, want) {
		t.Errorf("lines without a guard: %v, want %v", bare, want)
	}
}
