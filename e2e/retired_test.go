package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/render/publish"
	"xdspub/tools/envoytest"
)

// TestGoingFileByHand changes the endpoints of a retired cluster by hand, and their record. The cluster is trimmed
// all the same, and until then, an Envoy that starts accepts all published files.
func TestGoingFileByHand(t *testing.T) {
	t.Parallel()
	const file = "eds/blue/eds.json"
	for _, tt := range []struct {
		name string
		hand func(t *testing.T, s *fixture)
	}{
		{"no record", func(t *testing.T, s *fixture) {
			if err := os.RemoveAll(filepath.Join(s.out, ".xdspub")); err != nil {
				t.Fatal(err)
			}
		}},
		{"edited", func(t *testing.T, s *fixture) {
			text, err := os.ReadFile(filepath.Join(s.out, file))
			if err != nil {
				t.Fatal(err)
			}
			envoytest.Publish(t, filepath.Join(s.out, file), strings.Replace(string(text), `"version_info": "v`, `"version_info": "w`, 1))
		}},
		{"removed", func(t *testing.T, s *fixture) {
			if err := os.Remove(filepath.Join(s.out, file)); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
			edge := envoytest.FreePort(t)
			tree := func(name string, port int) string {
				return documents(edsCluster(name), endpoints(name, port), routes("main", name), listener("edge", edge, rds("main")))
			}
			s := startConfirmed(t, map[string]string{"edge.yaml": tree("blue", blue.Port())}, "--trim-delay", "2s")
			tt.hand(t, s)
			s.write(t, "edge.yaml", tree("green", green.Port()))
			s.watch.WaitLog(t, "event=published ")
			content(t, s.reader(t))
			envoytest.Eventually(t, patience, "the cluster and its endpoints go", func() (bool, string) {
				m, err := publish.ReadManifest(s.out)
				if err != nil {
					t.Fatal(err)
				}
				clusters, err := os.ReadFile(filepath.Join(s.out, "cds/cds.json"))
				_, known := m.Files.Get(file)
				return err == nil && !known && len(m.Retired) == 0 && !s.exists(file) && !strings.Contains(string(clusters), `"blue"`), fmt.Sprint(m, err)
			})
			s.took(t)
		})
	}
}
