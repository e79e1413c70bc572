package follow_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"xdspub/diag"
	"xdspub/source/follow"
	"xdspub/source/load"
	"xdspub/xds"
)

var update = flag.Bool("update", false, "rewrite the wanted output in testdata, and fail")

// TestFollow follows boot.yaml of each testdata/*.txtar, its directory as Envoy's
// working directory, and compares:
//
//   - snapshot: each resource, what delivers it, and whether that is all
//   - want: the findings, as they are printed
func TestFollow(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	printed := map[string]bool{"inotify-limit": true} // TestManySubscriptions
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			for _, d := range golden(t, path) {
				printed[d.Code] = true
			}
		})
	}
	for _, c := range follow.Codes {
		if !printed[c.Name] && !*update && flag.Lookup("test.run").Value.String() == "" {
			t.Errorf("no case has a finding %s", c.Name)
		}
	}
}

func golden(t *testing.T, path string) diag.List {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	kept := archive.Files[:0:0]
	for _, f := range archive.Files {
		if f.Name == "snapshot" || f.Name == "want" {
			continue
		}
		kept = append(kept, f)
	}
	if err := txtar.Write(&txtar.Archive{Files: kept}, dir); err != nil {
		t.Fatal(err)
	}
	result, err := follow.Bootstrap(t.Context(), filepath.Join(dir, "boot.yaml"), follow.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	archive.Files = append(kept,
		txtar.File{Name: "snapshot", Data: []byte(describe(result))},
		txtar.File{Name: "want", Data: []byte(strings.ReplaceAll(text(t, result), dir+"/", ""))})
	got := txtar.Format(archive)
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s (-want +got):\n%s", path, cmp.Diff(string(want), string(got)))
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return result.Diagnostics
}

func describe(r *follow.Result) string {
	var b strings.Builder
	for _, resource := range r.Snapshot.All() {
		fmt.Fprintf(&b, "%s: %s\n", resource.DeliveredBy, resource.Key)
	}
	for _, t := range r.Incomplete {
		fmt.Fprintf(&b, "there may be another %s\n", t.Noun)
	}
	return b.String()
}

func text(t *testing.T, r *follow.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := diag.WriteText(&b, r.Diagnostics, diag.TextOptions{Line: r.Line}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestMissingBootstrap(t *testing.T) {
	if _, err := follow.Bootstrap(t.Context(), filepath.Join(t.TempDir(), "none.yaml"), follow.Options{}); err == nil {
		t.Error("a missing bootstrap was followed")
	}
}

// TestManySubscriptions checks the findings about inotify instances: a warning near the limit, an error above
// it. Polled files need no instances.
func TestManySubscriptions(t *testing.T) {
	for _, c := range []struct {
		n          int
		also, want string
	}{{90, "", ""}, {99, "", "warning"}, {126, "", "warning"}, {128, "", "error"}, {128, ", poll_interval: 1s", ""}} {
		n, want := c.n, c.want
		dir := t.TempDir()
		clusters := "resources:\n"
		for i := range n {
			name := fmt.Sprintf("c%03d", i)
			clusters += fmt.Sprintf("- {'@type': %s, name: %[2]s, type: EDS, eds_cluster_config: {eds_config: {path_config_source: {path: eds/%[2]s/eds.yaml%[3]s}}}}\n", xds.Cluster.URL(), name, c.also)
			write(t, filepath.Join(dir, "eds", name, "eds.yaml"), fmt.Sprintf("resources: [{'@type': %s, cluster_name: %s}]\n", xds.Endpoints.URL(), name))
		}
		write(t, filepath.Join(dir, "cds", "cds.yaml"), clusters)
		write(t, filepath.Join(dir, "boot.yaml"), "node: {id: a, cluster: c}\ndynamic_resources: {cds_config: {path_config_source: {path: cds/cds.yaml}}}\n")
		result, err := follow.Bootstrap(t.Context(), filepath.Join(dir, "boot.yaml"), follow.Options{Root: dir})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, d := range result.Diagnostics {
			if d.Code != "inotify-limit" || got != "" {
				t.Fatalf("%d clusters: unwanted: %s [%s]", n, d.Message, d.Code)
			}
			got = d.Severity.String()
		}
		if got != want {
			t.Errorf("%d clusters with CDS: %q, want %q", n, got, want)
		}
	}
}

// TestDraft checks that following a Draft does not read the files that the Draft names.
func TestDraft(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "cds.yaml"), "resources: [{name: not read}]\n")
	for text, want := range map[string]string{
		"node: {id: a, cluster: c}\ndynamic_resources: {cds_config: {path_config_source: {path: ./cds.yaml}}, lds_config: {path_config_source: {path: ./none.yaml}}}\n": "",
		"dynamic_resources: {cds_config: {path_config_source: {path: ./cds.yaml}}}\n":                                                                                   "node-missing",
		"nod: {}\n": "unknown-field",
	} {
		result, err := follow.Bootstrap(t.Context(), "draft.yaml", follow.Options{Root: dir, Draft: &load.Input{Name: "draft.yaml", Format: "yaml", Data: []byte(text)}})
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for _, d := range result.Diagnostics {
			got += d.Code
			if d.File != "draft.yaml" {
				t.Error(d)
			}
		}
		if got != want {
			t.Errorf("%s: %v, want %s", text, result.Diagnostics, want)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
