//go:build !light

package publish_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/diag"
	"xdspub/xds"
)

// tree is a source tree with some resources of each type, in several forms. A tree is valid after mend.
type tree struct {
	Clusters  [3]treeCluster
	Shared    int // the content of the shared endpoint assignment
	Routes    [2]treeRoutes
	Listeners [2]treeListener
	Secret    int
	Marker    int
	Layer     int // 0 for none
	Scope     int // 0 for none, otherwise the number of a cluster, from 1
}

type treeCluster struct {
	Kind      string // "" is none
	Value     int
	Endpoints int
}

type treeRoutes struct {
	There   bool
	Cluster int
}

type treeListener struct {
	Kind string // "" is none
	Port int
	Uses int // a cluster or routes
}

var (
	clusterKinds  = []string{"", "static", "eds", "eds", "shared", "tls"}
	listenerKinds = []string{"", "inline", "rds", "rds", "tls", "ecds", "scoped"}
)

// edit makes one random change.
func (g *tree) edit(r *rand.Rand) {
	i := r.IntN(3)
	c, j, l := &g.Clusters[i], &g.Routes[r.IntN(2)], &g.Listeners[r.IntN(2)]
	switch r.IntN(16) {
	case 0, 1, 2:
		c.Kind = clusterKinds[r.IntN(len(clusterKinds))]
		c.Endpoints = r.IntN(2)
	case 3:
		c.Value = 1 - c.Value
	case 4:
		c.Endpoints = 1 - c.Endpoints
		g.Shared = 1 - g.Shared
	case 5, 6:
		j.There, j.Cluster = r.IntN(3) > 0, r.IntN(3)
	case 7, 8, 9:
		l.Kind, l.Uses = listenerKinds[r.IntN(len(listenerKinds))], r.IntN(3)
	case 10:
		l.Port = r.IntN(3)
	case 11, 12, 13, 14: // a cluster comes and all routes move to it, or the cluster goes
		if c.Kind == "" {
			c.Kind = clusterKinds[1+r.IntN(len(clusterKinds)-1)]
			g.Routes[0].Cluster, g.Routes[1].Cluster = i, i
			if l.Kind == "inline" {
				l.Uses = i
			}
		} else {
			c.Kind = ""
		}
	case 15:
		switch r.IntN(4) {
		case 0:
			g.Secret = 1 - g.Secret
		case 1:
			g.Marker = 1 - g.Marker
		case 2:
			g.Layer = r.IntN(3)
		case 3:
			g.Scope = r.IntN(4)
		}
	}
}

// mend removes references to missing resources, and gives each listener a port of its own.
func (g *tree) mend() {
	if g.Clusters[0].Kind == "" {
		g.Clusters[0].Kind = "static"
	}
	is := func(i int) int {
		if i > 2 || g.Clusters[i].Kind == "" {
			return 0
		}
		return i
	}
	for k := range g.Listeners {
		l := &g.Listeners[k]
		switch l.Kind {
		case "inline":
			l.Uses = is(l.Uses)
		case "rds", "tls", "ecds":
			l.Uses %= 2
			g.Routes[l.Uses].There = true
		case "scoped":
			if g.Scope == 0 {
				g.Scope = 1
			}
		}
	}
	for j := range g.Routes {
		g.Routes[j].Cluster = is(g.Routes[j].Cluster)
	}
	if g.Scope > 0 {
		g.Scope = is(g.Scope-1) + 1
	}
	if g.Listeners[0].Port == g.Listeners[1].Port {
		g.Listeners[1].Port = (g.Listeners[1].Port + 1) % 3
	}
}

// quarry makes resources. Equal resources of several trees are the same *xds.Resource.
type quarry map[string]*xds.Resource

func (q quarry) one(key string, make func() proto.Message) *xds.Resource {
	r := q[key]
	if r == nil {
		var err error
		if r, err = xds.NewResource(make(), "", nowhere{}); err != nil {
			panic(err)
		}
		q[key] = r
	}
	return r
}

// nowhere is the Origin of resources that are in no file.
type nowhere struct{}

func (nowhere) Range(xds.Path) diag.Range          { return diag.Range{} }
func (nowhere) InWrapper(xds.Path) (at diag.Range) { return }
func (nowhere) Constraints(bool) (at diag.Range)   { return }

func (nowhere) Correct(xds.Path, diag.Correction) (e diag.Edit, ok bool) { return }

func (nowhere) Shows(xds.Path) bool { return false }

// snapshot returns the tree as a Snapshot.
func (q quarry) snapshot(g tree) *xds.Snapshot {
	var list []*xds.Resource
	add := func(make func() proto.Message, key ...any) { list = append(list, q.one(fmt.Sprint(key...), make)) }
	shared := false
	for i, c := range g.Clusters {
		name := fmt.Sprint("c", i)
		if c.Kind != "" {
			add(func() proto.Message { return makeCluster(name, c) }, "cluster ", name, c.Kind, c.Value)
		}
		if c.Kind == "eds" {
			add(func() proto.Message { return assignment(name, c.Endpoints) }, "endpoints ", name, c.Endpoints)
		}
		shared = shared || c.Kind == "shared"
	}
	if shared {
		add(func() proto.Message { return assignment("shared", g.Shared) }, "endpoints shared", g.Shared)
	}
	secret := func(name string) {
		add(func() proto.Message { return trusted(name, g.Secret) }, "secret ", name, g.Secret)
	}
	if uses(g, func(c treeCluster) bool { return c.Kind == "tls" }, nil) {
		secret("ca")
	}
	if uses(g, nil, func(l treeListener) bool { return l.Kind == "tls" }) {
		secret("server")
	}
	if uses(g, nil, func(l treeListener) bool { return l.Kind == "ecds" }) {
		add(func() proto.Message { return marker(g.Marker) }, "marker ", g.Marker)
	}
	for j, r := range g.Routes {
		if name := fmt.Sprint("r", j); r.There {
			add(func() proto.Message { return routesTo(name, r.Cluster) }, "routes ", name, r.Cluster)
		}
	}
	if g.Scope > 0 {
		add(func() proto.Message { return routesTo("by-scope", g.Scope-1) }, "routes by-scope", g.Scope-1)
		add(func() proto.Message { return scope() }, "scope")
	}
	if g.Layer > 0 {
		add(func() proto.Message { return layer(g.Layer) }, "layer ", g.Layer)
	}
	for k, l := range g.Listeners {
		if name := fmt.Sprint("l", k); l.Kind != "" {
			add(func() proto.Message { return makeListener(name, l) }, "listener ", name, l.Kind, l.Port, l.Uses)
		}
	}
	return xds.NewSnapshot(list)
}

func uses(g tree, c func(treeCluster) bool, l func(treeListener) bool) bool {
	for _, is := range g.Clusters {
		if c != nil && c(is) {
			return true
		}
	}
	for _, is := range g.Listeners {
		if l != nil && l(is) {
			return true
		}
	}
	return false
}

func packed(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return a
}

// here returns the config source that means "from this snapshot".
func here() *corev3.ConfigSource {
	return &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}}
}

func sdsFrom(name string) *tlsv3.SdsSecretConfig {
	return &tlsv3.SdsSecretConfig{Name: name, SdsConfig: here()}
}

func makeCluster(name string, c treeCluster) proto.Message {
	m := &clusterv3.Cluster{Name: name, ConnectTimeout: durationpb.New(time.Duration(1+c.Value) * time.Second)}
	switch c.Kind {
	case "eds":
		m.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
	case "shared":
		m.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
		m.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{ServiceName: "shared"}
	case "tls":
		m.TransportSocket = &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed(&tlsv3.UpstreamTlsContext{
			CommonTlsContext: &tlsv3.CommonTlsContext{ValidationContextType: &tlsv3.CommonTlsContext_ValidationContextSdsSecretConfig{ValidationContextSdsSecretConfig: sdsFrom("ca")}},
		})}}
	}
	return m
}

func assignment(name string, value int) proto.Message {
	return &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address(20000 + value)}},
	}}}}}
}

func address(port int) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(port)},
	}}}
}

func trusted(name string, value int) proto.Message {
	inline := func(text string) *corev3.DataSource {
		return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}}
	}
	s := &tlsv3.Secret{Name: name}
	if name == "ca" {
		s.Type = &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: inline(fmt.Sprint("ca ", value))}}
	} else {
		s.Type = &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{CertificateChain: inline(fmt.Sprint("chain ", value)), PrivateKey: inline("key")}}
	}
	return s
}

func marker(value int) proto.Message {
	m := &mutationv3.HeaderMutation{}
	if value > 0 {
		m.MostSpecificHeaderMutationsWins = true
	}
	return &corev3.TypedExtensionConfig{Name: "marker", TypedConfig: packed(m)}
}

func routeTable(name string, cluster int) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{Name: name, VirtualHosts: []*routev3.VirtualHost{{
		Name: "all", Domains: []string{"*"},
		Routes: []*routev3.Route{{
			Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
			Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: fmt.Sprint("c", cluster)}}},
		}},
	}}}
}

func routesTo(name string, cluster int) proto.Message { return routeTable(name, cluster) }

func scope() proto.Message {
	return &routev3.ScopedRouteConfiguration{Name: "scope", RouteConfigurationName: "by-scope", Key: &routev3.ScopedRouteConfiguration_Key{
		Fragments: []*routev3.ScopedRouteConfiguration_Key_Fragment{{Type: &routev3.ScopedRouteConfiguration_Key_Fragment_StringKey{StringKey: "x"}}},
	}}
}

func layer(value int) proto.Message {
	return &runtimev3.Runtime{Name: "flags", Layer: &structpb.Struct{Fields: map[string]*structpb.Value{"flag": structpb.NewNumberValue(float64(value))}}}
}

func makeListener(name string, l treeListener) proto.Message {
	hcm := &hcmv3.HttpConnectionManager{StatPrefix: "in"}
	chain := &listenerv3.FilterChain{}
	switch l.Kind {
	case "inline":
		hcm.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: routeTable("inline", l.Uses)}
	case "scoped":
		hcm.RouteSpecifier = &hcmv3.HttpConnectionManager_ScopedRoutes{ScopedRoutes: &hcmv3.ScopedRoutes{
			Name: "scopes", RdsConfigSource: here(),
			ScopeKeyBuilder: &hcmv3.ScopedRoutes_ScopeKeyBuilder{Fragments: []*hcmv3.ScopedRoutes_ScopeKeyBuilder_FragmentBuilder{{
				Type: &hcmv3.ScopedRoutes_ScopeKeyBuilder_FragmentBuilder_HeaderValueExtractor_{HeaderValueExtractor: &hcmv3.ScopedRoutes_ScopeKeyBuilder_FragmentBuilder_HeaderValueExtractor{
					Name: "x", ExtractType: &hcmv3.ScopedRoutes_ScopeKeyBuilder_FragmentBuilder_HeaderValueExtractor_Index{},
				}},
			}}},
			ConfigSpecifier: &hcmv3.ScopedRoutes_ScopedRds{ScopedRds: &hcmv3.ScopedRds{ScopedRdsConfigSource: here()}},
		}}
	default:
		hcm.RouteSpecifier = &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{RouteConfigName: fmt.Sprint("r", l.Uses), ConfigSource: here()}}
	}
	if l.Kind == "ecds" {
		hcm.HttpFilters = append(hcm.HttpFilters, &hcmv3.HttpFilter{Name: "marker", ConfigType: &hcmv3.HttpFilter_ConfigDiscovery{ConfigDiscovery: &corev3.ExtensionConfigSource{
			ConfigSource: here(), TypeUrls: []string{"type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation"},
		}}})
	}
	hcm.HttpFilters = append(hcm.HttpFilters, &hcmv3.HttpFilter{Name: "router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: packed(&routerv3.Router{})}})
	if l.Kind == "tls" {
		chain.TransportSocket = &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed(&tlsv3.DownstreamTlsContext{
			CommonTlsContext: &tlsv3.CommonTlsContext{TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{sdsFrom("server")}},
		})}}
	}
	chain.Filters = []*listenerv3.Filter{{Name: "hcm", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed(hcm)}}}
	return &listenerv3.Listener{Name: name, Address: address(10000 + l.Port), FilterChains: []*listenerv3.FilterChain{chain}}
}
