package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/tools/envoytest"
)

// TestOwnTypes: an Envoy that does not know a type of the user accepts a resource with a message of this type in a
// field that Envoy does not read, if the resource is published in binary form. In any other format, Envoy refuses
// the file.
func TestOwnTypes(t *testing.T) {
	inFormats(t, func(t *testing.T, format string) {
		dir, err := filepath.Abs(filepath.Join(root, "examples/own-types/config"))
		if err != nil {
			t.Fatal(err)
		}
		cluster, err := os.ReadFile(filepath.Join(dir, "clusters.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		s := newFixture(t, map[string]string{"all.yaml": string(cluster)}, "--format", format, "--descriptor-set", filepath.Join(dir, "types.binpb"))
		s.startWatch(t)
		s.startEnvoy(t)
		if format == "pb" {
			s.took(t)
			if clusters := s.envoy.Admin(t, "/clusters"); !strings.Contains(clusters, "shop::127.0.0.1:8081") {
				t.Errorf("Envoy has the clusters\n%s", clusters)
			}
			return
		}
		envoytest.Eventually(t, patience, "Envoy has refused the file", func() (bool, string) {
			n := s.envoy.Stat(t, "cluster_manager.cds.update_failure") + s.envoy.Stat(t, "cluster_manager.cds.update_rejected")
			return n > 0, fmt.Sprint(n, " refusals")
		})
		if clusters := s.envoy.Admin(t, "/clusters"); strings.Contains(clusters, "shop::") {
			t.Errorf("Envoy has the clusters\n%s", clusters)
		}
		if log := s.envoy.Log(); format != "pb_text" && !strings.Contains(log, "acme.v1.Quota") {
			t.Errorf("Envoy's log does not name the type:\n%s", log)
		}
	})
}
