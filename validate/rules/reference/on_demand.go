package reference

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ondemandv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/on_demand/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

// onDemandSource returns the config source of on-demand clusters in the node's message, and its field. Both are
// zero for other messages.
func onDemandSource(n *xds.Node) (field string, source *corev3.ConfigSource) {
	switch m := n.Message.(type) {
	case *ondemandv3.OnDemandCds:
		return "source", m.GetSource()
	case *tcpproxyv3.TcpProxy_OnDemand:
		return "odcds_config", m.GetOdcdsConfig()
	}
	return "", nil
}

// fetched are the fields whose cluster Envoy can get on demand.
var fetched = []protoreflect.FullName{
	"envoy.config.route.v3.RouteAction.cluster",
	"envoy.config.route.v3.WeightedCluster.ClusterWeight.name",
	"envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.cluster",
	"envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster.ClusterWeight.name",
}

// comesOnDemand reports whether Envoy may get the missing cluster when a request needs it: by the on_demand filter
// of the connection manager, by a configuration of this filter for a route, or by the on_demand field of a TCP
// proxy.
func comesOnDemand(p *validate.LookupPass, n *xds.Node, use xds.Use) bool {
	if !slices.Contains(fetched, use.Field) {
		return false
	}
	for at := n; at != nil; at = at.Parent {
		switch m := at.Message.(type) {
		case *tcpproxyv3.TcpProxy:
			return m.GetOnDemand() != nil
		case interface {
			GetTypedPerFilterConfig() map[string]*anypb.Any
		}:
			for _, config := range m.GetTypedPerFilterConfig() {
				if asksOnDemand(config) {
					return true
				}
			}
		}
	}
	managers, _, _ := managersOf(p, n)
	return slices.ContainsFunc(managers, func(m *hcmv3.HttpConnectionManager) bool {
		return slices.ContainsFunc(m.GetHttpFilters(), func(f *hcmv3.HttpFilter) bool {
			configs := facts.FilterConfigs(p, f.GetName(), f.GetTypedConfig(), f.GetConfigDiscovery())
			return slices.ContainsFunc(configs, func(c facts.FilterConfig) bool { return asksOnDemand(c.Any) })
		})
	})
}

// asksOnDemand reports whether config configures an on_demand filter, or its use by a route, with a config source
// of clusters.
func asksOnDemand(config *anypb.Any) bool {
	switch m := xds.Unpack(config).(type) {
	case *ondemandv3.OnDemand:
		return m.GetOdcds() != nil
	case *ondemandv3.PerRouteConfig:
		return m.GetOdcds() != nil
	}
	return false
}
