package load

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xdspub/source/syntax"
)

// TestOverlay checks that a text of the overlay replaces or adds a file of the tree, and that resources inline
// it. The text can't lead out of the tree, and has the limits of a file.
func TestOverlay(t *testing.T) {
	dir := t.TempDir()
	tree, beside := filepath.Join(dir, "tree"), filepath.Join(dir, "beside")
	cluster := func(name string) []byte {
		return []byte("\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: " + name + "\n")
	}
	routes := func(file string) []byte {
		return []byte("\"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration\nname: routes\nvirtual_hosts: [{name: a, domains: [a], routes: [{match: {prefix: /}, direct_response: {status: 200, body: {filename: " + file + "}}}]}]\n")
	}
	for path, text := range map[string][]byte{"tree/a.yaml": cluster("a"), "tree/b.yaml": cluster("b"), "beside/c.yaml": cluster("c")} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(beside, "c.yaml"), filepath.Join(tree, "c.yaml")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		overlay map[string][]byte
		allow   []string
		want    string // the resources, then the findings
	}{
		{nil, nil, "a b; outside-tree"},
		{map[string][]byte{"tree/a.yaml": cluster("x")}, nil, "x b; outside-tree"},
		{map[string][]byte{"tree/a.yaml": nil}, nil, "b; empty-file outside-tree"},
		{map[string][]byte{"tree/new/d.yaml": cluster("d"), "tree/.new/d.yaml": cluster("hidden"), "tree/d.md": cluster("prose")}, nil, "a b d; outside-tree"},
		{map[string][]byte{"tree/d.bak": cluster("d")}, nil, "a b; outside-tree ignored-file"},
		{map[string][]byte{"beside/c.yaml": cluster("x")}, nil, "a b; outside-tree"},
		{map[string][]byte{"beside/c.yaml": cluster("x")}, []string{beside}, "a b x; "},
		{map[string][]byte{"beside/d.yaml": cluster("x")}, []string{beside}, "a b c; "},
		{map[string][]byte{"tree/a.yaml": routes("text"), "tree/text": []byte("x")}, nil, "routes b; outside-tree"},
		{map[string][]byte{"tree/a.yaml": routes("text"), "tree/text": nil}, nil, "routes b; missing-file outside-tree"},
		{map[string][]byte{"tree/a.yaml": routes("text"), "tree/text": make([]byte, 1<<20+1)}, nil, "routes b; missing-file outside-tree"},
		{map[string][]byte{"tree/a.yaml": routes("../beside/new"), "beside/new": []byte("x")}, nil, "routes b; outside-tree outside-tree"},
		{map[string][]byte{"tree/a.yaml": routes("../beside/new"), "beside/new": []byte("x")}, []string{beside}, "routes b c; "},
		{map[string][]byte{"tree/a.yaml": make([]byte, syntax.MaxBytes+1)}, nil, "b; too-large outside-tree"},
	} {
		o := Options{Allow: c.allow, Overlay: make(map[string][]byte)}
		for path, text := range c.overlay {
			o.Overlay[filepath.Join(dir, path)] = text
		}
		loader := New(o)
		for _, load := range []func() (*Result, error){
			func() (*Result, error) { return loader.Load(t.Context(), tree) },
			func() (*Result, error) { return loader.Load(t.Context(), tree) },
			func() (*Result, error) {
				return loader.Update(t.Context(), tree, []string{filepath.Join(tree, "b.yaml")})
			},
		} {
			r, err := load()
			if err != nil {
				t.Fatal(err)
			}
			var names, codes []string
			for _, one := range r.Resources() {
				names = append(names, one.Name)
			}
			for _, d := range r.Diagnostics {
				codes = append(codes, d.Code)
			}
			if got := strings.Join(names, " ") + "; " + strings.Join(codes, " "); got != c.want {
				t.Errorf("%q allow %q: %s, want %s", slices.Collect(maps.Keys(c.overlay)), c.allow, got, c.want)
			}
		}
	}
}
