package main

import (
	"bytes"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// may lists the packages that a package imports. One that is not listed may not be
// imported by, nor import, any other. * stands for each family of rules.
var may = map[string][]string{
	"diag":                   {},
	"xds":                    {"xds/params", "diag", "xds/xdstp"},
	"xds/xdstp":              {},
	"xds/alltypes":           {},
	"report":                 {"diag", "internal/fspath"},
	"report/baseline":        {"diag", "report", "internal/safefile"},
	"check/policy":           {"diag", "internal/fspath"},
	"xds/params":             {},
	"xds/variants":           {"xds", "xds/params", "xds/xdstp"},
	"internal/safefile":      {},
	"event":                  {"diag"},
	"source/gitdir":          {"internal/safefile"},
	"source/revision":        {"source/gitdir", "internal/bounded", "internal/safefile", "internal/fspath"},
	"envoy/envoyapi":         {"diag", "xds"},
	"source/load":            {"xds/params", "diag", "envoy/envoyapi", "internal/fspath", "internal/safefile", "xds", "xds/alltypes", "xds/xdstp"},
	"validate":               {"diag", "envoy/envoyapi", "xds"},
	"validate/facts":         {"diag", "envoy/envoyapi", "xds", "validate"},
	"validate/rules":         {"validate", "validate/facts", "validate/rules/*"},
	"validate/rules/*":       {"diag", "envoy/envoyapi", "xds", "xds/xdstp", "validate", "validate/facts"},
	"validate/rules/matcher": {"validate/re2"},
	"validate/rules/syntax":  {"validate/cel", "validate/jwks", "validate/lua", "validate/re2", "validate/substitution", "validate/uritemplate"},
	"validate/rules/tls":     {"validate/boring", "internal/expiry"},
	"validate/rules/variant": {"xds/params"},
	"validate/jwks":          {},
	"validate/lua":           {},
	"validate/re2":           {},
	"validate/transition":    {"diag", "xds"},
	"source/follow":          {"diag", "envoy/envoyapi", "xds", "source/load", "internal/fspath"},
	"xds/bind":               {"xds"},
	"render":                 {"xds/bind", "diag", "xds", "internal/names"},
	"setup/bootstrap":        {"diag", "xds", "source/load", "internal/addr"},
	"envoy/trial":            {"diag", "internal/bounded"},
	"setup/grpcboot":         {"diag", "source/load", "internal/safefile", "xds", "xds/xdstp"},
	"setup/initial":          {"diag", "setup/bootstrap", "setup/grpcboot", "internal/addr"},
	"setup/importer":         {"diag", "xds", "source/load", "render", "setup/bootstrap"},
	"render/publish":         {"event", "diag", "internal/safefile", "internal/fspath", "internal/names", "internal/usergroup"},
	"watch/notify":           {"event", "source/gitdir", "internal/safefile", "internal/fspath"},
	"envoy":                  {"event", "diag", "xds/quorum", "internal/safefile", "internal/fspath"},
	"xds/quorum":             {},
	"render/published":       {"event", "envoy/envoyapi", "xds", "source/load", "render", "render/publish", "envoy", "internal/fspath", "internal/names"},
	"check/oracle":           {"diag", "envoy/envoyapi", "xds", "source/load", "render", "setup/bootstrap", "envoy/trial", "envoy", "render/published"},
	"check":                  {"xds/params", "xds/variants", "diag", "envoy/envoyapi", "xds", "source/load", "validate/transition", "source/follow", "check/oracle", "setup/grpcboot", "check/policy", "validate", "validate/rules", "internal/fspath"},
	"render/planner":         {"event", "diag", "envoy/envoyapi", "xds", "validate", "validate/rules", "validate/transition", "render", "render/publish", "render/published"},
	"render/confirm":         {"event", "diag", "validate/transition", "xds", "render/publish", "render/published", "envoy"},
	"render/trim":            {"event", "diag", "xds", "render", "render/publish", "render/published", "render/confirm"},
	"watch/status":           {"diag", "xds", "render", "render/publish", "render/published", "envoy"},
	"check/scope":            {"check", "diag", "source/gitdir", "internal/fspath", "source/load", "report", "source/revision", "internal/safefile"},
	"check/codes":            {"check", "render/planner", "render/confirm", "xds/clients", "setup/bootstrap", "envoy/trial", "setup/importer", "diag"},
	"watch/pipeline":         {"event", "diag", "xds", "check", "render", "render/publish", "render/published", "render/planner", "render/confirm", "render/trim", "envoy", "source/revision"},
	"watch":                  {"event", "diag", "xds", "xds/bind", "source/load", "render/publish", "watch/notify", "envoy", "watch/control", "check", "validate/transition", "render/planner", "render/published", "watch/pipeline", "render/confirm", "source/revision", "internal/fspath", "xds/clients", "xds/params", "xds/variants"},
	"serve":                  {"diag", "event", "xds", "xds/xdstp", "internal/addr", "serve/admit", "serve/cache", "serve/listen", "serve/memory", "serve/rest", "serve/turns", "xds/clients", "watch/control", "serve/csds", "xds/params", "xds/variants"},
	"serve/cache":            {"event", "diag", "validate/transition", "xds/quorum", "xds", "xds/xdstp", "xds/params", "xds/variants", "xds/bind", "xds/clients"},
	"serve/listen":           {"event", "internal/addr", "internal/safefile", "internal/expiry", "internal/usergroup", "serve/memory", "serve/turns"},
	"serve/admit":            {"event", "xds", "xds/params", "serve/memory"},
	"serve/memory":           {},
	"serve/turns":            {},
	"serve/rest":             {"diag", "xds", "xds/params", "xds/xdstp", "serve/admit", "serve/cache", "serve/memory", "serve/turns"},
	"xds/clients":            {"diag"},
	"cmd/xdspub":             {"check/codes", "internal/addr", "internal/expiry", "xds/params", "xds/variants", "check/scope", "source/revision", "event", "diag", "source/gitdir", "report", "xds/quorum", "xds", "xds/xdstp", "source/load", "render", "render/publish", "watch/notify", "setup/bootstrap", "envoy/trial", "setup/grpcboot", "setup/initial", "setup/importer", "envoy", "watch/control", "check", "check/oracle", "report/baseline", "render/planner", "check/policy", "render/published", "serve", "watch/status", "render/trim", "watch", "watch/pipeline", "internal/fspath", "serve/admit", "serve/cache", "serve/listen", "xds/clients", "serve/csds"},
	"serve/csds":             {"serve/memory", "xds/clients", "watch/control", "diag", "internal/safefile", "xds", "internal/expiry"},
	"watch/control":          {"xds/clients", "diag"},
	"validate/cel":           {"validate/re2"},
	"validate/substitution":  {"diag", "validate/cel"},
	"validate/boring":        {},
	"validate/uritemplate":   {},
}

// only lists modules, and packages of Go, that only some packages may import, so
// that a choice of library stays a choice of one package.
var only = map[string][]string{
	"os/exec":                                    {"source/revision", "envoy/trial"}, // these start git, and the user's own Envoy
	"log/slog":                                   {"event", "cmd/xdspub"},            // what is logged is an event
	"github.com/fsnotify/fsnotify":               {"watch/notify"},
	"github.com/urfave/cli":                      {"cmd/xdspub"},
	"sigs.k8s.io/yaml":                           {"source/load", "render", "setup/bootstrap"},
	"go.yaml.in/yaml":                            {"source/load", "setup/bootstrap", "setup/importer"},
	"github.com/go-json-experiment":              {"setup/bootstrap", "source/load", "render", "serve/rest", "validate/substitution"},
	"cel.dev/cel-go":                             {"validate/cel"},
	"software.sslmate.com":                       {"validate/boring"},
	"google.golang.org/grpc":                     {"serve", "serve/admit", "serve/cache", "serve/memory", "serve/rest", "serve/csds"},
	"github.com/prometheus":                      {"serve"},
	"golang.org/x/time":                          {"serve/listen"},
	"github.com/envoyproxy/go-control-plane/pkg": {"serve", "serve/cache"},
}

func TestImportsRunOneWay(t *testing.T) {
	for _, p := range listed(t) {
		name, ok := strings.CutPrefix(p.ImportPath, "xdspub/")
		if !ok || strings.HasPrefix(name, "tools/") || strings.HasPrefix(name, "internal/") || strings.HasPrefix(name, "examples/") || name == "e2e" {
			continue
		}
		allowed, known := may[name]
		if isFamily(name) {
			allowed, known = append(may["validate/rules/*"], allowed...), true
		}
		if !known {
			t.Errorf("%s is a package that this test does not know: say in `may` what it imports", name)
		}
		for _, i := range p.Imports {
			below, ok := strings.CutPrefix(i, "xdspub/")
			if ok && !slices.Contains(allowed, below) && !(isFamily(below) && slices.Contains(allowed, "validate/rules/*")) {
				t.Errorf("%s imports %s", name, below)
			}
			for module, importers := range only {
				if (i == module || strings.HasPrefix(i, module+"/")) && !slices.Contains(importers, name) {
					t.Errorf("%s imports %s, which only %v may", name, i, importers)
				}
			}
		}
	}
}

// TestExamples: each package that a program of others can import shows how it is used.
// A family of rules does so by the examples of each of them.
func TestExamples(t *testing.T) {
	for _, p := range listed(t) {
		name := strings.TrimPrefix(p.ImportPath, "xdspub/")
		if _, exported := may[name]; !exported || isFamily(name) || p.Name == "main" || name == "xds/alltypes" { // nothing to call there
			continue
		}
		examples := 0
		for _, test := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, test), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range doc.Examples(file) {
				if e.Output != "" {
					examples++
				}
			}
		}
		if examples == 0 {
			t.Errorf("%s has no Example with an output", name)
		}
	}
}

func listed(t *testing.T) []pkg {
	t.Helper()
	list, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestPicture: docs/imports.svg shows the imports as they are.
func TestPicture(t *testing.T) {
	had, err := os.ReadFile("../../docs/imports.svg")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(had, picture(graphOf(listed(t)))) {
		t.Error("docs/imports.svg is old: go generate ./tools/imports")
	}
}

// TestVersionIsHandedOn: what an Envoy has is asked of the Version that was handed on. Only
// where options may leave it out, the latest one is chosen.
func TestVersionIsHandedOn(t *testing.T) {
	chooses := []string{"source/follow/follow.go", "source/load/source.go", "check/oracle/fold.go", "validate/validate.go"}
	for _, p := range listed(t) {
		name := strings.TrimPrefix(p.ImportPath, "xdspub/")
		if _, part := may[name]; !part && !isFamily(name) || name == "envoy/envoyapi" {
			continue
		}
		for _, file := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			at := name + "/" + file
			for _, known := range []string{"envoyapi.Latest", "envoyapi.Versions"} {
				if bytes.Contains(text, []byte(known)) != (known == "envoyapi.Latest" && slices.Contains(chooses, at)) {
					t.Errorf("%s: %s is for %v alone; ask the Version of Pass, or of the options", at, known, chooses)
				}
			}
		}
	}
}

// TestVersionIsSet: whoever has options in which the version stands sets it in those that it
// makes of them. A command chooses none.
func TestVersionIsSet(t *testing.T) {
	takers := []string{"load.Options", "load.Input", "follow.Options", "oracle.Candidate", "validate.Options"}
	for _, p := range listed(t) {
		name := strings.TrimPrefix(p.ImportPath, "xdspub/")
		if _, part := may[name]; !part || name == "cmd/xdspub" {
			continue
		}
		for _, file := range p.GoFiles {
			set := token.NewFileSet()
			parsed, err := parser.ParseFile(set, filepath.Join(p.Dir, file), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if made, ok := n.(*ast.CompositeLit); ok && slices.Contains(takers, typeName(made)) && !slices.ContainsFunc(made.Elts, setsVersion) {
					t.Errorf("%s: %s without its Envoy", set.Position(made.Pos()), typeName(made))
				}
				return true
			})
		}
	}
}

// typeName returns the type of a literal where another package has it.
func typeName(made *ast.CompositeLit) string {
	if of, ok := made.Type.(*ast.SelectorExpr); ok {
		if from, ok := of.X.(*ast.Ident); ok {
			return from.Name + "." + of.Sel.Name
		}
	}
	return ""
}

func setsVersion(element ast.Expr) bool {
	pair, ok := element.(*ast.KeyValueExpr)
	if !ok {
		return false
	}
	key, ok := pair.Key.(*ast.Ident)
	return ok && key.Name == "Envoy"
}

// TestArchitecture: docs/architecture.md has a row about each package, and about no other.
func TestArchitecture(t *testing.T) {
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| folder |")
	table, _, _ = strings.Cut(table, "\n\n")
	var rows []string
	for row := range strings.Lines(table) {
		folders, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for _, name := range regexp.MustCompile("`([^`]+)/`").FindAllStringSubmatch(folders, -1) {
			rows = append(rows, name[1])
		}
	}
	var has []string
	for _, p := range listed(t) {
		name, ok := strings.CutPrefix(p.ImportPath, "xdspub/")
		if isFamily(name) {
			name = "validate/rules/*"
		}
		if ok && !strings.HasPrefix(name, "examples/") && !slices.Contains(has, name) {
			has = append(has, name)
		}
	}
	slices.Sort(rows)
	slices.Sort(has)
	if !slices.Equal(rows, has) {
		t.Errorf("the rows are about\n%s\nthe packages are\n%s", strings.Join(rows, " "), strings.Join(has, " "))
	}
}
