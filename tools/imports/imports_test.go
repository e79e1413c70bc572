package imports

import (
	"bytes"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// folders reads the law of each folder of the root from the table of docs/architecture.md: the name of the folder,
// and the folders that it imports.
func folders(t *testing.T) (names []string, imports map[string][]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| folder |")
	table, _, _ = strings.Cut(table, "\n\n")
	imports = make(map[string][]string)
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(row), "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		name := strings.Trim(cells[1], " `/")
		names = append(names, name)
		imports[name] = strings.Fields(cells[3])
	}
	return names, imports
}

// TestFolders compares docs/architecture.md with the imports: a folder imports what its row says, and only
// folders of the rows below. So there is no circle of folders.
func TestFolders(t *testing.T) {
	names, laws := folders(t)
	has := make(map[string][]string)
	for _, p := range listed(t) {
		if !isProduct(p) {
			continue
		}
		folder, _ := folderOf(p.ImportPath)
		has[folder] = append(has[folder], "")
		for _, i := range p.Imports {
			if below, ours := folderOf(i); ours && below != folder {
				has[folder] = append(has[folder], below)
			}
		}
	}
	for folder, imports := range has {
		slices.Sort(imports)
		imports = slices.Compact(imports)[1:]
		if law, known := laws[folder]; !known {
			t.Errorf("docs/architecture.md has no row about %s/", folder)
		} else if !slices.Equal(imports, law) {
			t.Errorf("%s/ imports %v, and docs/architecture.md says %v", folder, imports, law)
		}
		for _, below := range imports {
			if slices.Index(names, below) < slices.Index(names, folder) {
				t.Errorf("%s/ imports %s/, which docs/architecture.md has above it", folder, below)
			}
		}
	}
	for _, name := range names {
		if has[name] == nil {
			t.Errorf("docs/architecture.md has a row about %s/, which has no package", name)
		}
	}
}

// TestReadmes: each folder of the root has a README of at most ten lines. The exception is the README of the
// examples, which is a page for users.
func TestReadmes(t *testing.T) {
	roots, err := filepath.Glob("../../[a-z]*/")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range roots {
		text, err := os.ReadFile(filepath.Join(folder, "README.md"))
		if os.IsNotExist(err) && !isTracked(t, folder) {
			continue
		} else if err != nil {
			t.Error(err)
		} else if n := strings.Count(string(text), "\n"); n > 10 && filepath.Base(folder) != "examples" {
			t.Errorf("%s/README.md has %d lines", folder, n)
		}
	}
}

// isTracked reports whether git has files of a folder. Untracked folders, such as bin, do not belong to the
// repository.
func isTracked(t *testing.T, folder string) bool {
	t.Helper()
	out, err := exec.Command("git", "ls-files", folder).Output()
	if err != nil {
		t.Fatal(err)
	}
	return len(out) > 0
}

// unaware lists packages that must not depend on some packages, either directly or through other packages.
var unaware = map[string][]string{
	"render/publish":        {"xdspub/xds", "google.golang.org/protobuf/proto", "xdspub/envoy", "xdspub/watch/control"},
	"envoy":                 {"xdspub/xds", "google.golang.org/protobuf/proto", "xdspub/render/publish", "xdspub/watch/control"},
	"watch/control":         {"xdspub/xds", "google.golang.org/protobuf/proto", "xdspub/render/publish", "xdspub/envoy"},
	"source/settingsfile":   {"xdspub/xds"},
	"source/syntax":         {"xdspub/xds", "google.golang.org/protobuf/proto"},
	"source/revision":       {"xdspub/xds", "google.golang.org/protobuf/proto"},
	"report":                {"xdspub/xds", "sigs.k8s.io/yaml"},
	"validate":              {"xdspub/validate/rules", "xdspub/source/load"},
	"validate/boring":       {"xdspub/xds", "google.golang.org/protobuf/proto"},
	"validate/cel":          {"xdspub/xds", "xdspub/envoy/envoyapi"},
	"validate/jwks":         {"xdspub/xds", "xdspub/envoy/envoyapi"},
	"validate/lua":          {"xdspub/xds", "google.golang.org/protobuf/proto"},
	"validate/re2":          {"xdspub/xds", "google.golang.org/protobuf/proto"},
	"validate/substitution": {"xdspub/xds", "xdspub/envoy/envoyapi"},
	"validate/transition":   {"xdspub/render/publish", "xdspub/source/load"},
	"serve/cache":           {"xdspub/serve/listen"},
	"xds":                   {"xdspub/source/load", "sigs.k8s.io/yaml"},
}

func TestUnaware(t *testing.T) {
	for _, p := range listed(t) {
		for _, other := range unaware[p.name()] {
			if slices.Contains(p.Deps, other) {
				t.Errorf("%s depends on %s", p.name(), other)
			}
		}
		for _, i := range p.Imports {
			if isFamily(p.name()) && isFamily(strings.TrimPrefix(i, module)) {
				t.Errorf("%s imports %s: families do not know each other", p.name(), i)
			}
		}
	}
}

// only lists modules, and packages of the standard library, that only some packages may import, so that only these
// packages depend on the choice of a library.
var only = map[string][]string{
	"os/exec":                                    {"source/revision", "envoy/trial", "observe/hook"}, // these start git, the user's own Envoy, and the programs of --on-event
	"log/slog":                                   {"event", "cmd/xdspub"},                            // other packages log by package event
	"github.com/coreos/go-systemd/v22":           {"observe/sdnotify", "serve/listen"},
	"github.com/fsnotify/fsnotify":               {"watch/notify"},
	"github.com/urfave/cli":                      {"cmd/xdspub"},
	"sigs.k8s.io/yaml":                           {"source/syntax", "render", "setup/bootstrap"},
	"go.yaml.in/yaml":                            {"source/decode", "source/syntax", "setup/bootstrap", "setup/importer"},
	"github.com/go-json-experiment":              {"setup/bootstrap", "source/decode", "source/settingsfile", "source/syntax", "render", "serve/rest", "validate/substitution"},
	"cel.dev/cel-go":                             {"validate/cel"},
	"software.sslmate.com":                       {"validate/boring"},
	"go.etcd.io/etcd":                            {"store"},
	"filippo.io/age":                             {"store"},
	"google.golang.org/grpc":                     {"store", "serve", "serve/admit", "serve/cache", "serve/memory", "serve/rest", "serve/csds", "internal/grpcdial", "source/upstream"},
	"github.com/prometheus":                      {"observe", "serve"},
	"golang.org/x/time":                          {"serve/listen"},
	"github.com/envoyproxy/go-control-plane/pkg": {"serve", "serve/cache"},
}

// TestLibraries: only the packages of `only` import these libraries.
func TestLibraries(t *testing.T) {
	for _, p := range listed(t) {
		if !isProduct(p) {
			continue
		}
		for _, i := range p.Imports {
			for library, importers := range only {
				if (i == library || strings.HasPrefix(i, library+"/")) && !slices.Contains(importers, p.name()) {
					t.Errorf("%s imports %s, which only %v may", p.name(), i, importers)
				}
			}
		}
	}
}

// TestExamples: each package of the program has an Example. A family of rules has the examples of its rules instead.
func TestExamples(t *testing.T) {
	for _, p := range listed(t) {
		folder, _ := folderOf(p.ImportPath)
		if !isProduct(p) || isFamily(p.name()) || folder == "internal" || p.Name == "main" || p.name() == "xds/alltypes" { // nothing to call there
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
			t.Errorf("%s has no Example with an output", p.name())
		}
	}
}

// TestVersionIsHandedOn: code asks the Version that it gets as an argument. Only packages whose options may leave
// out the Version choose envoyapi.Latest.
func TestVersionIsHandedOn(t *testing.T) {
	chooses := []string{"source/follow/follow.go", "source/decode/source.go", "check/oracle/fold.go", "validate/validate.go"}
	for _, p := range listed(t) {
		if !isProduct(p) || p.name() == "envoy/envoyapi" {
			continue
		}
		for _, file := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			at := p.name() + "/" + file
			for _, known := range []string{"envoyapi.Latest", "envoyapi.Versions"} {
				if bytes.Contains(text, []byte(known)) != (known == "envoyapi.Latest" && slices.Contains(chooses, at)) {
					t.Errorf("%s: %s is for %v alone; ask the Version of Pass, or of the options", at, known, chooses)
				}
			}
		}
	}
}

// TestVersionIsSet: code that has options with a Version, and makes other options with a Version, sets the Version
// there. A command chooses no Version.
func TestVersionIsSet(t *testing.T) {
	takers := []string{"load.Options", "load.Input", "follow.Options", "oracle.Candidate", "validate.Options"}
	for _, p := range listed(t) {
		if folder, _ := folderOf(p.ImportPath); !isProduct(p) || folder == "cmd" {
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

// typeName returns the type of a literal as package.Type; empty for a type of the same package.
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
