package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"xdspub/tools/envoytest"
)

// refusedCluster is a cluster that Envoy refuses, and the enabled rules of these tests accept.
const refusedCluster = `"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: refused
type: STATIC
health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {send: {text: zz}}}]
`

// TestOracle: a watch with --envoy publishes nothing that this Envoy refuses, and nothing while this Envoy gives no
// answer.
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

// TestReasons: if an Envoy rejects a change without a reason, xdspub starts the Envoy of --envoy on the change to
// get the reason, even if this Envoy accepted the resources by --mode validate.
func TestReasons(t *testing.T) {
	config := func(weight string) string {
		endpoint := func(port string) string {
			return "{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: " + port + "}}}, load_balancing_weight: " + weight + "}"
		}
		return documents(`"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: svc
type: EDS
lb_policy: RING_HASH
`, `"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
cluster_name: svc
endpoints: [{lb_endpoints: [`+endpoint("1")+", "+endpoint("2")+`]}]
`)
	}
	s := newFixture(t, map[string]string{"a.yaml": config("1")}, "--envoy", envoytest.Binary(t), "--disable", "weight-sum", "--eds", "file")
	s.args = append(s.args, confirmed(s.admin)...)
	s.startWatch(t)
	before := s.bytesOut(t)
	s.startEnvoy(t)
	s.took(t)
	s.write(t, "a.yaml", config("4294967295"))
	s.watch.WaitLog(t, "event=rolled-back ")
	s.watch.WaitLog(t, "Envoy refuses the endpoint assignment: The sum of weights of all upstream hosts in a locality exceeds 4294967295")
	s.sameOut(t, before)
}
