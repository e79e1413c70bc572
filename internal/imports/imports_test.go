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
	"baseline":               {"diag", "report", "safefile"},
	"policy":                 {"diag", "internal/fspath"},
	"xds/params":             {},
	"xds/variants":           {"xds", "xds/params", "xds/xdstp"},
	"safefile":               {},
	"event":                  {"diag"},
	"gitdir":                 {"safefile"},
	"revision":               {"gitdir", "internal/bounded", "safefile", "internal/fspath"},
	"envoyapi":               {"diag", "xds"},
	"load":                   {"xds/params", "diag", "envoyapi", "internal/fspath", "safefile", "xds", "xds/alltypes", "xds/xdstp"},
	"validate":               {"diag", "envoyapi", "xds"},
	"validate/facts":         {"diag", "envoyapi", "xds", "validate"},
	"validate/rules":         {"validate", "validate/facts", "validate/rules/*"},
	"validate/rules/*":       {"diag", "envoyapi", "xds", "xds/xdstp", "validate", "validate/facts"},
	"validate/rules/matcher": {"validate/re2"},
	"validate/rules/syntax":  {"validate/cel", "validate/jwks", "validate/lua", "validate/re2", "validate/substitution", "validate/uritemplate"},
	"validate/rules/tls":     {"validate/boring", "internal/expiry"},
	"validate/rules/variant": {"xds/params"},
	"validate/jwks":          {},
	"validate/lua":           {},
	"validate/re2":           {},
	"diff":                   {"diag", "xds"},
	"follow":                 {"diag", "envoyapi", "xds", "load", "internal/fspath"},
	"bind":                   {"xds"},
	"render":                 {"bind", "diag", "xds", "internal/names"},
	"bootstrap":              {"diag", "xds", "load", "internal/addr"},
	"bootstrap/trial":        {"diag", "internal/bounded"},
	"grpcboot":               {"diag", "load", "safefile", "xds", "xds/xdstp"},
	"initial":                {"diag", "bootstrap", "grpcboot", "internal/addr"},
	"importer":               {"diag", "xds", "load", "render", "bootstrap"},
	"publish":                {"event", "diag", "safefile", "internal/fspath", "internal/names", "internal/usergroup"},
	"watch/notify":           {"event", "gitdir", "safefile", "internal/fspath"},
	"envoy":                  {"event", "diag", "quorum", "safefile", "internal/fspath"},
	"quorum":                 {},
	"published":              {"event", "envoyapi", "xds", "load", "render", "publish", "envoy", "internal/fspath", "internal/names"},
	"oracle":                 {"diag", "envoyapi", "xds", "load", "render", "bootstrap", "bootstrap/trial", "envoy", "published"},
	"check":                  {"xds/params", "xds/variants", "diag", "envoyapi", "xds", "load", "diff", "follow", "oracle", "grpcboot", "policy", "validate", "validate/rules", "internal/fspath"},
	"planner":                {"event", "diag", "envoyapi", "xds", "validate", "validate/rules", "diff", "render", "publish", "published"},
	"confirm":                {"event", "diag", "diff", "xds", "publish", "published", "envoy"},
	"trim":                   {"event", "diag", "xds", "render", "publish", "published", "confirm"},
	"status":                 {"diag", "xds", "render", "publish", "published", "envoy"},
	"scope":                  {"check", "diag", "gitdir", "internal/fspath", "load", "report", "revision", "safefile"},
	"check/codes":            {"check", "planner", "confirm", "clients", "bootstrap", "bootstrap/trial", "importer", "diag"},
	"pipeline":               {"event", "diag", "xds", "check", "render", "publish", "published", "planner", "confirm", "trim", "envoy", "revision"},
	"controller":             {"event", "diag", "xds", "bind", "load", "publish", "watch/notify", "envoy", "control", "check", "diff", "planner", "published", "pipeline", "confirm", "revision", "internal/fspath", "clients", "xds/params", "xds/variants"},
	"serve":                  {"diag", "event", "xds", "xds/xdstp", "internal/addr", "serve/admit", "serve/cache", "serve/listen", "serve/memory", "serve/rest", "serve/turns", "clients", "control", "serve/csds", "xds/params", "xds/variants"},
	"serve/cache":            {"event", "diag", "diff", "quorum", "xds", "xds/xdstp", "xds/params", "xds/variants", "bind", "clients"},
	"serve/listen":           {"event", "internal/addr", "safefile", "internal/expiry", "internal/usergroup", "serve/memory", "serve/turns"},
	"serve/admit":            {"event", "xds", "xds/params", "serve/memory"},
	"serve/memory":           {},
	"serve/turns":            {},
	"serve/rest":             {"diag", "xds", "xds/params", "xds/xdstp", "serve/admit", "serve/cache", "serve/memory", "serve/turns"},
	"clients":                {"diag"},
	"cmd/xdspub":             {"check/codes", "internal/addr", "internal/expiry", "xds/params", "xds/variants", "scope", "revision", "event", "diag", "gitdir", "report", "quorum", "xds", "xds/xdstp", "load", "render", "publish", "watch/notify", "bootstrap", "bootstrap/trial", "grpcboot", "initial", "importer", "envoy", "control", "check", "oracle", "baseline", "planner", "policy", "published", "serve", "status", "trim", "controller", "pipeline", "internal/fspath", "serve/admit", "serve/cache", "serve/listen", "clients", "serve/csds"},
	"serve/csds":             {"serve/memory", "clients", "control", "diag", "safefile", "xds", "internal/expiry"},
	"control":                {"clients", "diag"},
	"validate/cel":           {"validate/re2"},
	"validate/substitution":  {"diag", "validate/cel"},
	"validate/boring":        {},
	"validate/uritemplate":   {},
}

// only lists modules, and packages of Go, that only some packages may import, so
// that a choice of library stays a choice of one package.
var only = map[string][]string{
	"os/exec":                                    {"revision", "bootstrap/trial"}, // these start git, and the user's own Envoy
	"log/slog":                                   {"event", "cmd/xdspub"},         // what is logged is an event
	"github.com/fsnotify/fsnotify":               {"watch/notify"},
	"github.com/urfave/cli":                      {"cmd/xdspub"},
	"sigs.k8s.io/yaml":                           {"load", "render", "bootstrap"},
	"go.yaml.in/yaml":                            {"load", "bootstrap", "importer"},
	"github.com/go-json-experiment":              {"bootstrap", "load", "render", "serve/rest", "validate/substitution"},
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
		if !ok || strings.HasPrefix(name, "internal/") || strings.HasPrefix(name, "examples/") || name == "e2e" {
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
		t.Error("docs/imports.svg is old: go generate ./internal/imports")
	}
}

// TestVersionIsHandedOn: what an Envoy has is asked of the Version that was handed on. Only
// where options may leave it out, the latest one is chosen.
func TestVersionIsHandedOn(t *testing.T) {
	chooses := []string{"follow/follow.go", "load/source.go", "oracle/fold.go", "validate/validate.go"}
	for _, p := range listed(t) {
		name := strings.TrimPrefix(p.ImportPath, "xdspub/")
		if _, part := may[name]; !part && !isFamily(name) || name == "envoyapi" {
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
