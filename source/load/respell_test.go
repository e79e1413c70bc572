package load_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"

	"xdspub/source/load"
	"xdspub/xds"
)

// TestURLNames checks that Load spells xdstp names of a source tree in one way, whatever the format. A
// bootstrap keeps the names that Envoy reads.
func TestURLNames(t *testing.T) {
	const written, canonical = "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/web?z=1&a=%31", "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/web?a=1&z=1"
	cluster := fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: "xdstp://a/c?b&a", type: EDS, eds_cluster_config: {service_name: "%s"}}`, written)
	assignment := fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: "%s"}`, written)
	wrapped := fmt.Sprintf(`{"resources": [{"@type": "type.googleapis.com/envoy.service.discovery.v3.Resource", "name": "%s", "resource": {"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": "%s"}}]}`, canonical, written)
	escaped := `{"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": "xdstp\u003a//a/envoy.config.endpoint.v3.ClusterLoadAssignment/web?z=1&a=1"}`
	in := func(name, text string) *xds.Snapshot {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		result, err := load.New(load.Options{}).Load(t.Context(), dir)
		if err != nil || len(result.Diagnostics) > 0 {
			t.Fatal(err, result.Diagnostics)
		}
		return result.Snapshot()
	}
	s := in("clusters.yaml", cluster)
	c := s.Lookup(xds.Cluster, "xdstp://a/c?a=&b=")
	if c == nil {
		t.Fatal("no cluster by its canonical name")
	}
	if asks := c.Facts().Subscriptions; len(asks) != 1 || asks[0].Name != canonical || c.Message().(*clusterv3.Cluster).GetName() != c.Name {
		t.Errorf("the cluster asks for %v, and has the name %s", asks, c.Message().(*clusterv3.Cluster).GetName())
	}
	response := in("response.json", wrapped)
	packed, err := response.Lookup(xds.Endpoints, canonical).Canonical()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("resources { [type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment] { cluster_name: %q } }", written)
	asIs, result := load.Response(load.Input{Name: "a.pb_text", Format: "pb_text", Data: []byte(text)})
	binary, err := proto.Marshal(asIs)
	if err != nil || len(result.Diagnostics) > 0 {
		t.Fatal(err, result.Diagnostics)
	}
	if !strings.Contains(string(binary), written) {
		t.Error("what is read as it was written has other names")
	}
	for name, text := range map[string]string{"a.yaml": assignment, "escaped.json": escaped, "a.pb_text": text, "a.pb": string(binary)} {
		r := in(name, text).Lookup(xds.Endpoints, canonical)
		if r == nil {
			t.Errorf("%s: no assignment by its canonical name", name)
			continue
		}
		if b, err := r.Canonical(); err != nil || string(b) != string(packed) {
			t.Errorf("%s: %q, %v; want %q", name, b, err, packed)
		}
	}
	boot, result := load.ParseBootstrap(load.Input{Name: "boot.yaml", Format: "yaml", Data: []byte("static_resources: {clusters: [{name: \"xdstp://a/c?b&a\"}]}")})
	if len(result.Diagnostics) > 0 || boot.GetStaticResources().GetClusters()[0].GetName() != "xdstp://a/c?b&a" {
		t.Error("a bootstrap has another name than Envoy reads in it", boot, result.Diagnostics)
	}
}
