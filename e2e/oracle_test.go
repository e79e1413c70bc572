package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"xdspub/internal/envoytest"
)

// refusedCluster is a cluster that Envoy refuses, and the rules that are on in these tests do not.
const refusedCluster = `"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: refused
type: STATIC
health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {send: {text: zz}}}]
`

// TestOracle: a watch with --envoy publishes nothing that this Envoy refuses, and nothing while it
// can't be asked.
func TestOracle(t *testing.T) {
	envoy := filepath.Join(t.TempDir(), "envoy")
	link := func() {
		if err := os.Symlink(envoytest.Binary(t), envoy); err != nil {
			t.Fatal(err)
		}
	}
	link()
	s := newFixture(t, map[string]string{"a.yaml": staticCluster("a", 1)}, "--envoy", envoy, "--disable", "health-check", "--rescan", "1s", "--allow-empty")
	s.startWatch(t)
	before := s.published(t)
	s.write(t, "b.yaml", refusedCluster)
	s.watch.WaitLog(t, "Envoy refuses the cluster: invalid hex string 'zz'")
	if now := s.published(t); now != before {
		t.Errorf("published: %s, before: %s", now, before)
	}
	s.remove(t, "b.yaml")
	s.watch.WaitLog(t, "event=source-valid")

	if err := os.Remove(envoy); err != nil {
		t.Fatal(err)
	}
	s.write(t, "c.yaml", staticCluster("c", 1))
	s.watch.WaitLog(t, "event=failed")
	if now := s.published(t); now != before {
		t.Errorf("published: %s, before: %s", now, before)
	}
	link()
	s.watch.WaitLog(t, "event=published ")
}
