package upstream

import (
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"xdspub/source/load"
)

// TestAuthoritiesReferToEachOther: a listener refers to a filter of an authority, and the filter refers to routes of
// the first control plane. Neither server waits for the other until names count as absent.
func TestAuthoritiesReferToEachOther(t *testing.T) {
	overEach(t, testAuthoritiesReferToEachOther)
}

func testAuthoritiesReferToEachOther(t *testing.T, by Transport) {
	main, b := newControlPlane(t), newControlPlane(t)
	routed := pack(&hcmv3.HttpConnectionManager{StatPrefix: "a", RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{RouteConfigName: "r", ConfigSource: ads}}})
	filter := nameOfB("envoy.config.core.v3.TypedExtensionConfig", "f")
	main.setAll(map[resource.Type][]types.Resource{
		resource.ListenerType: {&listenerv3.Listener{Name: "l", FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name: filter, ConfigType: &listenerv3.Filter_ConfigDiscovery{ConfigDiscovery: &corev3.ExtensionConfigSource{ConfigSource: ads, TypeUrls: []string{routed.GetTypeUrl()}}},
		}}}}}},
		resource.ClusterType: {}, resource.RouteType: {routes("r")},
	})
	b.setAll(map[resource.Type][]types.Resource{resource.ExtensionConfigType: {&corev3.TypedExtensionConfig{Name: filter, TypedConfig: routed}}})
	atMain, _ := main.listen(socketOf(t))
	atB, _ := b.listen(socketOf(t))
	f := followed(t, by, withAuthorityB(atB, func(u *Upstream) {
		u.options.Runtime, u.bounds.absentAfter = nil, time.Hour
	}), atMain)
	f.wait(true, has("LDS/l", "ECDS/"+filter, "RDS/r"))
}

// TestAuthorityIsNoLongerNeeded: the server of an authority is gone while the last reference to the authority goes. The
// resources of the authority go, too, and the next outage begins with the next reference.
func TestAuthorityIsNoLongerNeeded(t *testing.T) {
	main, b := newControlPlane(t), newControlPlane(t)
	refers := map[resource.Type][]types.Resource{resource.ListenerType: {listener("l", routeNameOfB("r"), "")}, resource.ClusterType: {}}
	own := map[resource.Type][]types.Resource{
		resource.ListenerType: {listener("l", "r", "")}, resource.RouteType: {routes("r")}, resource.ClusterType: {},
	}
	main.setAll(refers)
	b.setAll(map[resource.Type][]types.Resource{resource.RouteType: {routes(routeNameOfB("r"))}})
	atMain, _ := main.listen(socketOf(t))
	atB, stop := b.listen(socketOf(t))
	f := followed(t, DeltaAggregated, withAuthorityB(atB, func(u *Upstream) { u.options.Runtime = nil }), atMain)
	f.wait(true, has("LDS/l", "RDS/"+routeNameOfB("r")))
	stop()
	eventually(t, "the authority is gone", func() bool { return !f.State().Connected })
	main.setAll(own)
	c := f.wait(true, has("LDS/l", "RDS/r"))
	f.Judged(load.Judgement{N: c.N, Accepted: true})
	eventually(t, "the state is that of the other servers", func() bool { return f.State().Connected })
	before := time.Now()
	main.setAll(refers)
	c = f.wait(true, func(load.Contents) bool { return !f.State().Connected })
	if s := f.State(); s.Since.Before(before) {
		t.Errorf("the outage began %s before the reference", before.Sub(s.Since))
	}
	c = f.wait(true, has("LDS/l"))
	if len(c.Findings) != 1 {
		t.Errorf("%v", c.Findings)
	}
}

// TestAuthorityIsQuiet: an earlier server that never sends all resources makes no new contents.
func TestAuthorityIsQuiet(t *testing.T) {
	half, main, b := newControlPlane(t), newControlPlane(t), newControlPlane(t)
	refers := []types.Resource{listener("l", routeNameOfB("r"), "")}
	main.setAll(map[resource.Type][]types.Resource{resource.ListenerType: refers, resource.ClusterType: {}})
	b.setAll(map[resource.Type][]types.Resource{resource.RouteType: {routes(routeNameOfB("r"))}})
	atMain, _ := main.listen(socketOf(t))
	atB, _ := b.listen(socketOf(t))
	socket := socketOf(t)
	f := followed(t, DeltaAggregated, withAuthorityB(atB, func(u *Upstream) {
		u.options.Runtime, u.bounds.wholeWithin, u.bounds.absentAfter = nil, 100*time.Millisecond, time.Hour
	}), "unix:"+socket, atMain)
	f.wait(true, has("LDS/l", "RDS/"+routeNameOfB("r")))
	half.setAll(map[resource.Type][]types.Resource{
		resource.ListenerType: refers, resource.ClusterType: {edsCluster("none")},
	})
	half.listen(socket)
	asks := func(n int) func() bool {
		return func() bool {
			half.mu.Lock()
			defer half.mu.Unlock()
			return len(half.requests) >= n
		}
	}
	eventually(t, "the client asks the earlier server", asks(3))
	first, _ := f.Read(t.Context())
	eventually(t, "the client asks the earlier server again and again", asks(20))
	if c, _ := f.Read(t.Context()); c.N != first.N {
		t.Errorf("contents %d follow contents %d", c.N, first.N)
	}
}
