// Package imports holds the test that imports run one way: each room knows only
// what lies below it (docs/architecture.md).
package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// may lists the rooms that a room imports. A room that is not listed may not be
// imported by, nor import, any other. * stands for each family of rules.
var may = map[string][]string{
	"diag":                   {},
	"xds":                    {"diag"},
	"xds/alltypes":           {},
	"safefile":               {},
	"gitdir":                 {"safefile"},
	"load":                   {"diag", "safefile", "xds", "xds/alltypes"},
	"validate":               {"diag", "xds"},
	"validate/facts":         {"diag", "xds", "validate"},
	"validate/rules":         {"validate", "validate/rules/*"},
	"validate/rules/*":       {"diag", "xds", "validate", "validate/facts"},
	"validate/rules/matcher": {"validate/re2"},
	"validate/rules/syntax":  {"validate/cel", "validate/jwks", "validate/lua", "validate/re2", "validate/substitution", "validate/uritemplate"},
	"validate/rules/tls":     {"validate/boring"},
	"validate/jwks":          {},
	"validate/lua":           {},
	"validate/re2":           {},
	"diff":                   {"diag", "xds"},
	"follow":                 {"diag", "safefile", "xds", "load"},
	"bind":                   {"xds"},
	"render":                 {"bind", "diag", "xds"},
	"bootstrap":              {"diag", "xds"},
	"publish":                {"diag", "safefile"},
	"watch":                  {"diag", "gitdir", "safefile", "internal/fspath"},
	"envoy":                  {"diag", "safefile", "internal/fspath"},
	"pipeline":               {"diag", "xds", "load", "follow", "validate", "validate/rules", "diff", "render", "publish", "envoy", "gitdir", "safefile", "internal/fspath"},
	"controller":             {"diag", "load", "publish", "watch", "envoy", "control", "pipeline", "internal/fspath"},
	"cmd/xdspub":             {"diag", "xds", "load", "validate", "render", "publish", "watch", "bootstrap", "envoy", "control", "controller", "pipeline", "safefile"},
	"control":                {"diag"},
	"validate/cel":           {"validate/re2"},
	"validate/substitution":  {"diag", "validate/cel"},
	"validate/boring":        {},
	"validate/uritemplate":   {},
}

// only lists modules, and packages of Go, that just some rooms may import, so that
// a choice of library stays a choice of one room.
var only = map[string][]string{
	"os/exec":                                    {"pipeline"}, // starts git, and nothing else
	"github.com/fsnotify/fsnotify":               {"watch"},
	"github.com/urfave/cli":                      {"cmd/xdspub"},
	"sigs.k8s.io/yaml":                           {"load", "render", "bootstrap"},
	"go.yaml.in/yaml":                            {"load"},
	"github.com/go-json-experiment":              {"load", "render", "validate/substitution"},
	"cel.dev/cel-go":                             {"validate/cel"},
	"software.sslmate.com":                       {"validate/boring"},
	"google.golang.org/grpc":                     {},
	"github.com/envoyproxy/go-control-plane/pkg": {},
}

func TestImportsRunOneWay(t *testing.T) {
	for _, p := range packages(t) {
		room, ok := strings.CutPrefix(p.ImportPath, "xdspub/")
		if !ok || strings.HasPrefix(room, "internal/") || strings.HasPrefix(room, "examples/") || room == "e2e" {
			continue
		}
		allowed, known := may[room]
		if isFamily(room) {
			allowed, known = append(may["validate/rules/*"], allowed...), true
		}
		if !known {
			t.Errorf("%s is a room that this test does not know: say in `may` what it imports", room)
		}
		for _, i := range p.Imports {
			below, ok := strings.CutPrefix(i, "xdspub/")
			if ok && !slices.Contains(allowed, below) && !(isFamily(below) && slices.Contains(allowed, "validate/rules/*")) {
				t.Errorf("%s imports %s", room, below)
			}
			for module, rooms := range only {
				if (i == module || strings.HasPrefix(i, module+"/")) && !slices.Contains(rooms, room) {
					t.Errorf("%s imports %s, which only %v may", room, i, rooms)
				}
			}
		}
	}
}

// isFamily reports whether a room holds the rules of one family.
func isFamily(room string) bool { return strings.HasPrefix(room, "validate/rules/") }

// TestExamples: each package that a program of others can import shows how it is used.
// A family of rules does so by the examples of each of them.
func TestExamples(t *testing.T) {
	for _, p := range packages(t) {
		room := strings.TrimPrefix(p.ImportPath, "xdspub/")
		if _, exported := may[room]; !exported || isFamily(room) || p.Name == "main" || room == "xds/alltypes" { // nothing to call there
			continue
		}
		examples := 0
		for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ParseComments)
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
			t.Errorf("%s has no Example with an output", room)
		}
	}
}

type pkg struct {
	Dir          string
	Name         string
	ImportPath   string
	Imports      []string
	TestGoFiles  []string
	XTestGoFiles []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=Dir,Name,ImportPath,Imports,TestGoFiles,XTestGoFiles", "xdspub/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}
