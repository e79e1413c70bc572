package rules_test

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"xdspub/diag"
	"xdspub/validate/rules"
)

// TestFamilies: each rule has a file and examples with its name in the folder of its family, and is in the list of
// the family. Only the file of the rule uses declarations of this file. A helper for two files is in a file without
// a rule, and a helper for two families is in validate/facts.
func TestFamilies(t *testing.T) {
	mode := packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports
	families, err := packages.Load(&packages.Config{Mode: mode}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, p := range families {
		if len(p.Errors) > 0 {
			t.Fatal(p.Errors)
		}
		if p.Name == "rules" {
			unchanged(t, p)
			continue
		}
		unchanged(t, p)
		owners := rulesOf(t, p)
		for _, code := range owners {
			codes = append(codes, code)
		}
		checksOf(t, p, owners)
		for used, declared := range p.TypesInfo.Uses {
			at, from := fileOf(p, used.Pos()), fileOf(p, declared.Pos())
			if code, ok := owners[from]; ok && declared.Pkg() == p.Types && at != from && at != "rules.go" {
				t.Errorf("%s/%s uses %s, which stands in the file of %s: give it a file without a rule", p.Name, at, used.Name, code)
			}
		}
	}
	slices.Sort(codes)
	var listed []string
	for _, r := range rules.All {
		listed = append(listed, r.Code)
	}
	if !slices.Equal(codes, listed) {
		t.Errorf("rules in files:\n%s\nrules in the list:\n%s", codes, listed)
	}
	examples, err := filepath.Glob("*/testdata/*.txtar")
	if err != nil || len(examples) != len(codes) {
		t.Errorf("%d rules have %d files of examples, %v", len(codes), len(examples), err)
	}
}

// unchanged reports code that sets a field of a rule through a pointer. Family copies the rule, so such code may
// come too late.
func unchanged(t *testing.T, p *packages.Package) {
	for _, f := range p.Syntax {
		ast.Inspect(f, func(n ast.Node) bool {
			set, ok := n.(*ast.AssignStmt)
			if !ok {
				return true
			}
			for _, to := range set.Lhs {
				field, ok := to.(*ast.SelectorExpr)
				if ok && types.TypeString(p.TypesInfo.TypeOf(field.X), nil) == "*xdspub/validate.Rule" {
					t.Errorf("%s sets %s of a rule", p.Fset.Position(field.Pos()), field.Sel.Name)
				}
			}
			return true
		})
	}
}

// rulesOf maps the name of each file with a rule to the code of the rule. It checks that the names of the file and
// of the examples follow from the code.
func rulesOf(t *testing.T, p *packages.Package) map[string]string {
	owners := make(map[string]string)
	for _, f := range p.Syntax {
		file := fileOf(p, f.Package)
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			ast.Inspect(g, func(n ast.Node) bool {
				field, ok := n.(*ast.KeyValueExpr)
				if !ok || !isRule(p.TypesInfo.Uses, field) {
					return true
				}
				code, err := strconv.Unquote(field.Value.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				if owners[file] != "" {
					t.Errorf("%s/%s has two rules, %s and %s", p.Name, file, owners[file], code)
				}
				owners[file] = code
				if want := strings.ReplaceAll(code, "-", "_") + ".go"; file != want {
					t.Errorf("rule %s stands in %s/%s, not in %s", code, p.Name, file, want)
				}
				if !exists(filepath.Join(p.Name, "testdata", code+".txtar")) {
					t.Errorf("rule %s has no examples in %s/testdata", code, p.Name)
				}
				return false
			})
		}
	}
	return owners
}

// checksOf checks that a rule declares each name of a check in the code. In the file of a rule, only this rule
// counts.
func checksOf(t *testing.T, p *packages.Package, owners map[string]string) {
	for e, v := range p.TypesInfo.Types {
		if v.Value == nil || v.Type.String() != "xdspub/validate.CheckName" || constant.StringVal(v.Value) == "" {
			continue
		}
		at, declared := fileOf(p, e.Pos()), false
		for _, r := range rules.All {
			if owner, ok := owners[at]; (!ok || owner == r.Code) && slices.ContainsFunc(r.Checks, func(c diag.Check) bool { return c.Name == constant.StringVal(v.Value) }) {
				declared = true
			}
		}
		if !declared {
			t.Errorf("%s/%s: no rule declares the check %s", p.Name, at, v.Value)
		}
	}
}

// isRule reports whether a field is the field Code of a validate.Rule.
func isRule(uses map[*ast.Ident]types.Object, field *ast.KeyValueExpr) bool {
	key, ok := field.Key.(*ast.Ident)
	return ok && key.Name == "Code" && uses[key] != nil && uses[key].Pkg().Path() == "xdspub/validate"
}

func fileOf(p *packages.Package, pos token.Pos) string {
	return filepath.Base(p.Fset.Position(pos).Filename)
}
