package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"xdspub/render"
)

// documented returns the path of the program as make dist DOCS_URL=… builds it.
var documented = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(filepath.Dir(binary), "documented", "xdspub")
	build := exec.Command("go", "build", "-ldflags", "-w -X main.docsURL="+docsURL, "-o", bin, "xdspub/cmd/xdspub")
	out, err := build.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%v: %w\n%s", build, err, out)
	}
	return bin, err
})

const docsURL = "https://example.com/xdspub/blob/v1.2.3"

// TestDocsURL: a program with a DOCS_URL has links to the pages of rules in SARIF and in the list of rules.
func TestDocsURL(t *testing.T) {
	if testing.Short() {
		t.Skip("builds one more binary")
	}
	t.Parallel()
	bin, err := documented()
	if err != nil {
		t.Fatal(err)
	}
	const want = docsURL + "/docs/rules/reading.md#unknown-field"
	var rules []struct{ Code, URL string }
	stdout, stderr, exit := run(t, bin, "rules", "--format", "json")
	if err := json.Unmarshal([]byte(stdout), &rules); err != nil || exit != 0 {
		t.Fatal(exit, err, stderr)
	}
	for _, r := range rules {
		if !strings.HasPrefix(r.URL, docsURL+"/docs/rules/") || r.Code == "unknown-field" && r.URL != want {
			t.Errorf("the address of %s is %q", r.Code, r.URL)
		}
	}
	tree := t.TempDir()
	if err := os.WriteFile(filepath.Join(tree, "a.yaml"), []byte("\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nnaem: a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, exit = run(t, bin, "validate", "--format", "sarif", tree)
	if exit != 1 || !strings.Contains(stdout, `"helpUri": "`+want+`"`) {
		t.Errorf("exit status %d, no helpUri %s: %s\n%s", exit, want, stdout, stderr)
	}
	stdout, _, _ = run(t, binary, "validate", "--format", "sarif", tree)
	if strings.Contains(stdout, "helpUri") {
		t.Errorf("a program without an address has one:\n%s", stdout)
	}
}

// TestBuildToBuild: published files do not depend on the build. The spaces in the output of protojson and prototext
// depend on a hash of the running binary, so that two different builds would show a dependence.
func TestBuildToBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("builds two more binaries")
	}
	t.Parallel()
	first := make(map[string]string)
	other, err := documented()
	if err != nil {
		t.Fatal(err)
	}
	another := filepath.Join(t.TempDir(), "xdspub")
	if _, stderr, exit := run(t, "go", "build", "-ldflags", "-w -X main.docsURL=b", "-o", another, "./cmd/xdspub"); exit != 0 {
		t.Fatal(stderr)
	}
	for i, bin := range []string{binary, other, another} {
		out := t.TempDir()
		for _, f := range render.Formats {
			if _, stderr, exit := run(t, bin, "render", "--out", filepath.Join(out, f.Name), "--format", f.Name, "--envoy-path", "/xds", "examples/quickstart"); exit != 0 {
				t.Fatal(stderr)
			}
			for _, file := range []string{"cds/cds", "lds/lds", "rds/ingress/rds", "eds/api/eds"} {
				name := filepath.Join(f.Name, file+"."+f.Name)
				data, err := os.ReadFile(filepath.Join(out, name))
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					first[name] = string(data)
				} else if first[name] != string(data) {
					t.Errorf("%s differs between two builds:\n%s\n%s", name, first[name], data)
				}
			}
		}
	}
}
