package oracle

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The functions below return listeners and clusters around a resource to which Envoy would otherwise subscribe.
// Their addresses are abstract pipes, which Envoy does not open.

func listener(name string, chain *listenerv3.FilterChain) *listenerv3.Listener {
	l := &listenerv3.Listener{Name: name, Address: &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: "@" + name}}}}
	if chain != nil {
		l.FilterChains = []*listenerv3.FilterChain{chain}
	}
	return l
}

func httpListener(name string, routes *routev3.RouteConfiguration, filters ...*hcmv3.HttpFilter) *listenerv3.Listener {
	filters = append(filters, &hcmv3.HttpFilter{Name: "router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: packed(&routerv3.Router{})}})
	return listener(name, &listenerv3.FilterChain{Filters: []*listenerv3.Filter{{
		Name: "http", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed(&hcmv3.HttpConnectionManager{
			StatPrefix: "http", RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: routes}, HttpFilters: filters,
		})},
	}}})
}

// routesListener returns a listener with an inline route configuration. Envoy checks that the clusters of inline
// routes exist, and does not check this for routes from RDS. So routesListener turns off the check.
func routesListener(name string, routes *routev3.RouteConfiguration) *listenerv3.Listener {
	if routes.GetValidateClusters() == nil {
		routes.ValidateClusters = wrapperspb.Bool(false)
	}
	return httpListener(name, routes)
}

// emptyCluster returns a cluster without endpoints. Envoy accepts it.
func emptyCluster(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}}
}

func certificateListener(name string, c *tlsv3.TlsCertificate) *listenerv3.Listener {
	socket := &tlsv3.DownstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{TlsCertificates: []*tlsv3.TlsCertificate{c}}}
	return listener(name, &listenerv3.FilterChain{TransportSocket: &corev3.TransportSocket{
		Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed(socket)},
	}})
}

func validationCluster(name string, c *tlsv3.CertificateValidationContext) *clusterv3.Cluster {
	socket := &tlsv3.UpstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{
		ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: c},
	}}
	cluster := emptyCluster(name)
	cluster.TransportSocket = &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed(socket)}}
	return cluster
}

// holder is the kind of filter that an extension config configures.
type holder int

const (
	unheld holder = iota
	httpFilter
	listenerFilter
)

// listener returns a listener with a filter of kind h, which m configures. It returns nil for an unknown kind.
func (h holder) listener(name string, m *corev3.TypedExtensionConfig) *listenerv3.Listener {
	switch h {
	case httpFilter:
		return httpListener(name, &routev3.RouteConfiguration{},
			&hcmv3.HttpFilter{Name: m.GetName(), ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: m.GetTypedConfig()}})
	case listenerFilter:
		l := listener(name, nil)
		l.ListenerFilters = []*listenerv3.ListenerFilter{{
			Name:       m.GetName(),
			ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: m.GetTypedConfig()},
		}}
		return l
	}
	return nil
}
