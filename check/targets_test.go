package check_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/xds/params"
	"xdspub/xds/variants"
)

// targeted is a cluster with two variants. The second variant has a fault.
const targeted = `
"@type": type.googleapis.com/envoy.service.discovery.v3.Resource
resource_name: {name: web, dynamic_parameter_constraints: {constraint: {key: env, value: a}}}
resource: {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web}
---
"@type": type.googleapis.com/envoy.service.discovery.v3.Resource
resource_name: {name: web, dynamic_parameter_constraints: {constraint: {key: env, value: b}}}
resource: {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, connect_timeout: -1s}
`

func targetNamed(name string) check.Target {
	return check.Target{Name: name, Client: variants.Client{Parameters: params.Parameters{"env": name}}}
}

// TestTargets: each target has its own findings. Findings of all targets are shared, and other findings name their
// targets. A check after an edit finds the same as a new check. A target whose resources did not change keeps its
// Snapshot.
func TestTargets(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("web.yaml", targeted)
	o := check.Options{Path: dir, Targets: []check.Target{targetNamed("a"), targetNamed("b"), targetNamed("c")}}
	tree := check.New(o)
	checked, err := tree.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]map[string]int{"a": {}, "b": {"duration-range": 1}, "c": {"variant-gap": 1}} {
		if diff := cmp.Diff(want, codesOf(checked.For(name).Diagnostics)); diff != "" {
			t.Errorf("target %s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(map[string]int{"duration-range": 1, "variant-gap": 1}, codesOf(checked.Diagnostics)); diff != "" || len(checked.Shared) > 0 {
		t.Errorf("all (-want +got):\n%s%v", diff, checked.Shared)
	}

	path := write("more.yaml", "{\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: more, lb_polic: x}\n")
	for _, changed := range []string{path, write("notes.txt", "no resource\n")} {
		if checked, err = tree.Update(t.Context(), []string{changed}); err != nil {
			t.Fatal(err)
		}
	}
	cold, err := check.Once(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "a", "b", "c"} {
		if diff := cmp.Diff(cold.For(name).Diagnostics, checked.For(name).Diagnostics); diff != "" {
			t.Errorf("target %q after edits (-cold +warm):\n%s", name, diff)
		}
	}
	if codesOf(checked.Shared)["unknown-field"] != 1 || codesOf(checked.For("b").Own())["unknown-field"] != 0 {
		t.Errorf("shared: %v", checked.Shared)
	}
	if again, err := tree.Update(t.Context(), nil); err != nil || again.For("a").Snapshot != checked.For("a").Snapshot {
		t.Error("without an edit a target has another Snapshot", err)
	}

	a := checked.For("a")
	a.Refuse(check.OtherTarget("b", "an error", checked.For("b").Diagnostics))
	if codesOf(a.Diagnostics)["other-target"] != 1 || !a.Invalid(false) {
		t.Errorf("refused for another target: %v", a.Diagnostics)
	}
}

func codesOf(list diag.List) map[string]int {
	codes := make(map[string]int)
	for _, d := range list {
		codes[d.Code]++
	}
	return codes
}
