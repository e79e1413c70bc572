package follow

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFollowTotal checks the limit for the total size of files. A file inlined several times counts each
// time.
func TestFollowTotal(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"envoy.yaml": `
node: {id: a, cluster: a}
dynamic_resources:
  cds_config: {path_config_source: {path: ./cds.yaml}}
static_resources:
  secrets:
  - {name: one, generic_secret: {secret: {filename: ./data}}}
  - {name: two, generic_secret: {secret: {filename: ./data}}}
`,
		"cds.yaml": "resources: []\n",
		"data":     strings.Repeat("x", 1000),
	}
	size := int64(len(files["envoy.yaml"]) + len(files["cds.yaml"]) + 2*len(files["data"]))
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "envoy.yaml")
	if _, err := bootstrap(t.Context(), path, Options{Root: dir}, size); err != nil {
		t.Error(err)
	}
	for _, most := range []int64{size - 1, size - 1001, int64(len(files["envoy.yaml"])), 1} {
		if _, err := bootstrap(t.Context(), path, Options{Root: dir}, most); err == nil || !strings.Contains(err.Error(), "bytes together") {
			t.Errorf("of %d bytes %d are allowed: %v", size, most, err)
		}
	}
}
