package mutate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"xdspub/check"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/tools/certs"
	"xdspub/tools/mutate"
	"xdspub/watch/pipeline"
	"xdspub/xds"
)

// base is a working configuration: the resources of the files that Envoy reads, by path below its working directory.
type base struct {
	name  string
	files map[string][]any
}

func (b base) names() []string { return slices.Sorted(maps.Keys(b.files)) }

// write writes the files and the bootstrap, boot.json, to a directory.
func (b base) write(dir string) error {
	files := map[string][]byte{"boot.json": b.bootstrap()}
	for _, name := range b.names() {
		files[name] = response(b.files[name])
	}
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// bootstrap returns the bootstrap of an Envoy that reads the files.
func (b base) bootstrap() []byte {
	const bootstrap = `{"admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}}, "node": {"id": "node", "cluster": "cluster"},
 "dynamic_resources": {"cds_config": {"path_config_source": {"path": %q}}, "lds_config": {"path_config_source": {"path": %q}}}}`
	at := func(api string) string {
		for _, name := range b.names() {
			if strings.HasPrefix(filepath.Base(name), api+".") {
				return "./" + name
			}
		}
		return ""
	}
	return fmt.Appendf(nil, bootstrap, at("cds"), at("lds"))
}

// response returns a file that Envoy reads.
func response(resources []any) []byte {
	data, _ := json.Marshal(map[string]any{"resources": append([]any{}, resources...)}) // no error: resources came from JSON
	return data
}

// readExamples returns the published files of the examples.
func readExamples(t *testing.T) (bases []base) {
	t.Helper()
	for _, name := range []string{"quickstart", "multi", "kubernetes/config", "secrets"} {
		bases = append(bases, published(t, name))
	}
	return bases
}

// readCases returns the good sides of the cases of tools/agreement.
func readCases(t *testing.T) (bases []base) {
	t.Helper()
	cases, err := filepath.Glob("../agreement/testdata/cases/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	seen := make(map[string]bool)
	for _, name := range cases {
		b, ok := goodSide(t, name)
		text := fmt.Sprint(b.files)
		if ok && !seen[text] {
			bases = append(bases, b)
		}
		seen[text] = true
	}
	return bases
}

// goodSide returns the good side of a case. ok is false for a case with certificates or a bootstrap, which other
// mutants can't use.
func goodSide(t *testing.T, name string) (b base, ok bool) {
	t.Helper()
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b = base{name: strings.TrimSuffix(filepath.Base(name), ".txtar"), files: map[string][]any{"xds/cds.yaml": nil, "xds/lds.yaml": nil}}
	holds := false
	for _, f := range archive.Files {
		if f.Name == "boot.yaml" || bytes.Contains(f.Data, []byte("certs/")) {
			return b, false
		}
		if file, good := strings.CutPrefix(f.Name, "good/"); good {
			b.files["xds/"+file] = resources(t, f.Data)
			holds = holds || len(b.files["xds/"+file]) > 0
		}
	}
	return b, holds
}

// published returns the published files of an example.
func published(t *testing.T, example string) base {
	t.Helper()
	const placeholder = "/published"
	source, out := filepath.Join(t.TempDir(), "source"), filepath.Join(t.TempDir(), "out")
	if err := os.CopyFS(source, os.DirFS(filepath.Join("..", "..", "examples", example))); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(source, "make-certs")); err == nil {
		if said, err := exec.Command("go", "run", "xdspub/examples/"+example+"/make-certs", source).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", example, err, said)
		}
	}
	o := pipeline.Options{
		Source: check.Options{Path: source, Ignore: []string{"ci", "README.md", "*.pb", "*.go"}},
		Out:    out, EnvoyPath: placeholder, Endpoints: planner.EndpointsAuto, InotifyBudget: 120,
	}
	p := pipeline.New(o)
	checked, err := check.New(o.Source).Check(t.Context())
	if err != nil || !checked.Accepted() {
		t.Fatalf("%s: %v %v", example, err, checked.Diagnostics)
	}
	plan, list, err := p.Plan(t.Context(), checked.Snapshot, time.Now())
	if err != nil || list.HasErrors() {
		t.Fatalf("%s: %v %v", example, err, list)
	}
	dir, err := publish.Open(out, publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if _, err := p.Publish(context.Background(), dir, plan); err != nil {
		t.Fatal(err)
	}
	b := base{name: example, files: make(map[string][]any)}
	err = filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, ".xdspub") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(out, path)
		b.files["xds/"+filepath.ToSlash(name)] = resources(t, bytes.ReplaceAll(data, []byte(placeholder), []byte("./xds")))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// readRules reads the examples of the rules of package validate. The corpus also learns the bad examples, so that
// mutants have their faults in other places. The good examples with only clusters and listeners are bases.
func readRules(t *testing.T, corpus *mutate.Corpus) (bases []base) {
	t.Helper()
	names, err := filepath.Glob("../../validate/rules/*/testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no examples of rules: %v", err)
	}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		trees := make(map[string][]any)
		for _, f := range archive.Files {
			data, err := certs.Expand(f.Data)
			if err != nil {
				t.Fatal(err)
			}
			if tree, _, ok := strings.Cut(f.Name, "/"); ok && filepath.Ext(f.Name) == ".yaml" {
				list := resources(t, data)
				corpus.Learn(list)
				trees[tree] = append(trees[tree], list...)
			}
		}
		for _, tree := range slices.Sorted(maps.Keys(trees)) {
			b := base{name: strings.TrimSuffix(filepath.Base(name), ".txtar") + "/" + tree}
			if strings.HasPrefix(tree, "good") && b.take(trees[tree]) && isComplete(t, b) {
				bases = append(bases, b)
			}
		}
	}
	return bases
}

// isComplete reports whether an Envoy that reads the files of a base gets all resources that the base needs. In a
// source tree, other files could have them.
func isComplete(t *testing.T, b base) bool {
	dir := t.TempDir()
	if err := b.write(dir); err != nil {
		t.Fatal(err)
	}
	list, err := validate(dir)
	if err != nil {
		t.Fatal(err)
	}
	return !list.HasErrors()
}

// take makes a base of a list of resources. It returns false unless all are clusters and listeners, and Envoy does
// not wait for other resources.
func (b *base) take(list []any) bool {
	b.files = map[string][]any{"xds/cds.yaml": nil, "xds/lds.yaml": nil}
	for _, resource := range list {
		object, _ := resource.(map[string]any)
		switch object["@type"] {
		case xds.Cluster.URL():
			b.files["xds/cds.yaml"] = append(b.files["xds/cds.yaml"], object)
		case xds.Listener.URL():
			b.files["xds/lds.yaml"] = append(b.files["xds/lds.yaml"], object)
		default:
			return false
		}
	}
	waits := regexp.MustCompile(`/run/netns/|envoy\.clusters\.redis`)
	return len(list) > 0 && !waits.MatchString(fmt.Sprint(b.files))
}

func resources(t *testing.T, text []byte) []any {
	t.Helper()
	list, err := mutate.Resources(text)
	if err != nil {
		t.Fatal(err)
	}
	return list
}
