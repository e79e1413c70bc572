package load

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"xdspub/diag"
	"xdspub/xds"
)

// TestCompress checks that compressed texts give the same places, lines and corrections as the texts, and that
// an unchanged file gives the same resources.
func TestCompress(t *testing.T) {
	cluster := func(i int) string {
		return fmt.Sprintf("\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: c%d # é\nconnect_timeout: 1s\nlb_policy: RANDOM\n", i)
	}
	yaml := "%YAML 1.2\n---\n"
	var json, text []string
	for i := range 20 {
		yaml += cluster(i) + "---\n"
		json = append(json, fmt.Sprintf(`{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "j%d", "lb_policy": "RANDOM"}`, i))
		text = append(text, fmt.Sprintf("resources {\n  [type.googleapis.com/envoy.config.cluster.v3.Cluster] { name: \"t%d\" lb_policy: RANDOM }\n}", i))
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": yaml, "b.json": "{\"resources\": [\n" + strings.Join(json, ",\n") + "]}", "c.txtpb": strings.Join(text, "\n"),
		"small.yaml": cluster(100),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	says := func(r *Result) (said []string) {
		for _, r := range r.Resources() {
			at := r.Origin.Range("lb_policy")
			edit, ok := r.Origin.Correct("lb_policy", diag.Correction{Wrong: "RANDOM", Right: "MAGLEV"})
			said = append(said, fmt.Sprint(r.Name, at, edit, ok))
		}
		for _, file := range []string{"a.yaml", "b.json", "c.txtpb", "small.yaml"} {
			for n := range 90 {
				line, ok := r.Line(diag.Position{File: filepath.Join(dir, file), Line: n})
				said = append(said, fmt.Sprint(file, n, line, ok))
			}
		}
		return said
	}
	load := func(l *Loader) *Result {
		r, err := l.Load(context.Background(), dir)
		if err != nil || len(r.Diagnostics) > 0 {
			t.Fatal(err, r.Diagnostics)
		}
		return r
	}
	want := says(load(New(Options{})))
	l := New(Options{})
	was := load(l)
	compressed := l.Compress()
	if compressed != 3 { // all files except the small one
		t.Errorf("%d files are compressed, want 3", compressed)
	}
	runtime.GC() // frees weakly held memory
	for _, r := range []*Result{was, load(l)} {
		if got := says(r); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("compressed\n%v\nas it is\n%v", got, want)
		}
	}
	if again := load(l); again.Resources()[0] != was.Resources()[0] {
		t.Error("a file that did not change gives another resource")
	}
	edited := strings.Replace(yaml, "connect_timeout: 1s", "connect_timeout: 2s", 1)
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(edited), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := load(l).Snapshot().Lookup(xds.Cluster, "c0"); r == was.Resources()[0] {
		t.Error("a file that changed gives the same resource")
	}
}
