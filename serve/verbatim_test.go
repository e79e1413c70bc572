package serve_test

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"xdspub/serve/cache"
	"xdspub/xds"
)

// TestVerbatim checks that a client other than Envoy gets ads: {} as written. An Envoy, or a client without a
// user agent, gets the resource_api_version that Envoy needs.
func TestVerbatim(t *testing.T) {
	c := cache.New(cache.Options{})
	conn := dialTo(t, listen(t, c))
	tree := parse(t, `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: blue, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}`)
	if err := c.Publish(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	for agent, want := range map[string]corev3.ApiVersion{"envoy": corev3.ApiVersion_V3, "": corev3.ApiVersion_V3, "gRPC Go": corev3.ApiVersion_AUTO} {
		client := openAt(t, conn, "of "+agent, adsMethod)
		client.node.UserAgentName = agent
		client.ask(xds.Cluster)
		client.hear()
		var got clusterv3.Cluster
		if err := client.last.GetResources()[0].UnmarshalTo(&got); err != nil {
			t.Fatal(err)
		}
		source := got.GetEdsClusterConfig().GetEdsConfig()
		if source.GetAds() == nil || source.GetResourceApiVersion() != want {
			t.Errorf("user agent %q: %v, want ads of version %v", agent, source, want)
		}
	}
}
