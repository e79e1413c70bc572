package upstream

import (
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"xdspub/xds"
)

// TestSubscribeAgain: by state of the world, a client unsubscribes from a name and later subscribes to names. The later
// request has no version, so that the server sends the resources of all names again.
func TestSubscribeAgain(t *testing.T) {
	c := Aggregated.codec(nil)
	of := xds.RouteConfiguration
	for i, step := range []struct {
		request request
		version string
	}{
		{request{of: of, subscribe: []string{"a", "b"}}, ""},
		{request{of: of, nonce: "1", version: "v1"}, "v1"},
		{request{of: of, subscribe: []string{"c"}}, "v1"},
		{request{of: of, unsubscribe: []string{"a"}}, "v1"},
		{request{of: of, subscribe: []string{"a"}}, ""},
		{request{of: of, nonce: "2", version: "v1"}, "v1"},
		{request{of: of, unsubscribe: []string{"b"}, subscribe: []string{"d"}, deferred: true}, ""},
		{request{of: of, nonce: "3", version: "v2"}, ""},
		{request{of: of, nonce: "4", version: "v2"}, "v2"},
	} {
		m := c.request(step.request, nil)
		if step.request.deferred {
			if m != nil {
				t.Errorf("step %d: %v", i, m)
			}
			continue
		}
		if got := m.(*discoveryv3.DiscoveryRequest).GetVersionInfo(); got != step.version {
			t.Errorf("step %d: version %q, want %q", i, got, step.version)
		}
	}
}
