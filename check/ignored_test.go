package check_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/check"
	"xdspub/check/policy"
	"xdspub/diag"
)

// TestIgnoredEdits: after each edit, a tree that caches files must find the same as a new tree. Comments and
// overrides apply to both.
func TestIgnoredEdits(t *testing.T) {
	const routes = `"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
name: %s
virtual_hosts:
%s- {name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: gone}}]}
`
	dir := t.TempDir()
	o := check.Options{Path: dir, Rules: check.Rules{Overrides: policy.Overrides{
		{Files: []string{"legacy"}, Levels: map[string]policy.Level{"unresolved-reference": policy.At(diag.Warning)}},
	}}}
	tree := check.New(o)
	counts := func(r *check.Result) string {
		codes := make(map[string]int)
		for _, d := range r.Diagnostics {
			codes[d.Severity.String()+" "+d.Code]++
		}
		return fmt.Sprint(codes, r.Summary)
	}
	for i, edit := range []struct{ file, text, want string }{
		{"a.yaml", fmt.Sprintf(routes, "a", ""), "map[error unresolved-reference/cluster:1]"},
		{"legacy/b.yaml", fmt.Sprintf(routes, "b", ""), "map[error unresolved-reference/cluster:1 warning unresolved-reference/cluster:1]"},
		{"a.yaml", fmt.Sprintf(routes, "a", "# xdspub:ignore unresolved-reference it comes later\n"), "map[warning unresolved-reference/cluster:1]"},
		{"legacy/b.yaml", fmt.Sprintf("# xdspub:ignore unresolved-reference,weight-sum it comes later\n"+routes, "b", ""), "map[info unused-ignore:1]"},
		{"a.yaml", fmt.Sprintf(routes, "a", "# xdspub:ignore unresolved-reference\n"), "map[error unresolved-reference/cluster:1 info unused-ignore:1 warning ignore-comment:1]"},
		{"c.yaml", "# xdspub:ignore weight-sum x\n\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: gone\n", "map[info unused-ignore:3 warning ignore-comment:1]"},
		{"c.yaml", "# xdspub:ignore unknown-type x\n\"@type\": type.googleapis.com/envoy.config.cluster.v3.Clutter\nname: gone # xdspub:ignore weight-sum x\n", "map[error unknown-type:1 warning ignore-comment:2]"},
		{"c.yaml", "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Clutter # xdspub:ignore unknown-type x\nname: gone\n", "map[error unknown-type:1 warning ignore-comment:2]"},
		{"c.yaml", "", ""},
	} {
		path := filepath.Join(dir, edit.file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(edit.text), 0o644); err != nil {
			t.Fatal(err)
		}
		warm, err := tree.Update(t.Context(), []string{path})
		if err != nil {
			t.Fatal(err)
		}
		cold, err := check.Once(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(cold.Diagnostics, warm.Diagnostics); diff != "" {
			t.Errorf("edit %d (-cold +warm):\n%s", i, diff)
		}
		if want := fmt.Sprint(edit.want, " ", cold.Summary); edit.want != "" && counts(cold) != want {
			t.Errorf("edit %d: got %s, want %s\n%v", i, counts(cold), want, cold.Diagnostics)
		}
	}
}
