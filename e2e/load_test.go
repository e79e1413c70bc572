package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"xdspub/tools/envoytest"
)

// TestExamplesLoad: Envoy accepts each published file of each example for Envoy, and runs the version in the file.
func TestExamplesLoad(t *testing.T) { inFormats(t, testExamplesLoad) }

func testExamplesLoad(t *testing.T, format string) {
	entries, err := os.ReadDir(filepath.Join(root, "examples"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !entry.IsDir() || slices.Contains([]string{
			"grpc-clients",
			"own-types",       // Envoy ignores its listener; see TestOwnTypes
			"last-known-good", // has a control plane; see TestLastKnownGoodExample
		}, entry.Name()) {
			continue
		}
		t.Run(entry.Name(), func(t *testing.T) {
			envoytest.Binary(t)
			e := newExample(t, entry.Name(), ports(t, filepath.Join(root, "examples", entry.Name()))...)
			if _, err := os.Stat(filepath.Join(e.dir, "make-certs")); err == nil {
				if _, stderr, exit := run(t, "go", "run", "./examples/"+entry.Name()+"/make-certs", e.dir); exit != 0 {
					t.Fatal(stderr)
				}
			}
			s := newFixture(t, nil, "--format", format)
			s.src = e.tree(t)
			if target := targetOf[entry.Name()]; target != "" {
				s.args = append(s.args, "--target", target)
				s.out = filepath.Join(s.out, target)
			}
			s.startWatch(t)
			s.startEnvoy(t)
			s.took(t, unread[entry.Name()]...)
		})
	}
}

// unread has the folders of published files that the Envoy of an example does not read.
var unread = map[string][]string{
	"legacy": {"eds/shop", "rds/local_route"}, // config sources by path
}

// targetOf has the target of the Envoy, for examples with targets.
var targetOf = map[string]string{"fleet": "prod-us-canary"}

// ports returns the ports that a source tree names.
func ports(t *testing.T, tree string) []int {
	t.Helper()
	var found []int
	seen := map[string]bool{}
	err := filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !slices.Contains(texts, filepath.Ext(path)) {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`port_value"?: (\d+)`).FindAllStringSubmatch(string(text), -1) {
			if n, err := strconv.Atoi(m[1]); err == nil && !seen[m[1]] {
				seen[m[1]] = true
				found = append(found, n)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
