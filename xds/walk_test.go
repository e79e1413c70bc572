package xds_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	udpatypev1 "github.com/cncf/xds/go/udpa/type/v1"
	xdstypev3 "github.com/cncf/xds/go/xds/type/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	authzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/xds"
)

// parse makes an M of JSON.
func parse[M proto.Message](t testing.TB, m M, text string) M {
	t.Helper()
	if err := protojson.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	return m
}

// aListener has an Any in an Any in an Any, maps, a TypedStruct of each kind,
// and payloads that nobody can read.
const aListener = `{
  "name": "l",
  "address": {"socket_address": {"address": "127.0.0.1", "port_value": 80}},
  "filter_chains": [{"filters": [
    {"name": "hcm", "typed_config": {
      "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
      "http_filters": [
        {"name": "authz", "typed_config": {
          "@type": "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz",
          "grpc_service": {"envoy_grpc": {"cluster_name": "authz"}}}},
        {"name": "struct", "typed_config": {
          "@type": "type.googleapis.com/xds.type.v3.TypedStruct",
          "type_url": "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz",
          "value": {"grpcService": {"envoy_grpc": {"cluster_name": "from struct"}}}}},
        {"name": "udpa", "typed_config": {
          "@type": "type.googleapis.com/udpa.type.v1.TypedStruct",
          "type_url": "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz",
          "value": {"http_service": {"server_uri": {"cluster": "from udpa"}}}}},
        {"name": "no such", "typed_config": {
          "@type": "type.googleapis.com/xds.type.v3.TypedStruct",
          "type_url": "type.googleapis.com/no.Such",
          "value": {"a": 1}}},
        {"name": "unreadable", "typed_config": {
          "@type": "type.googleapis.com/xds.type.v3.TypedStruct",
          "type_url": "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz",
          "value": {"bogus": 1}}},
        {"name": "no value", "typed_config": {
          "@type": "type.googleapis.com/xds.type.v3.TypedStruct",
          "type_url": "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz"}}
      ],
      "route_config": {"typed_per_filter_config": {
        "b": {"@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "config": {
          "@type": "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute", "disabled": true}},
        "a.b": {"@type": "type.googleapis.com/google.protobuf.StringValue", "value": "x"},
        "empty": {}
      }}
    }}
  ]}]
}`

func listener(t testing.TB) *listenerv3.Listener {
	l := parse(t, &listenerv3.Listener{}, aListener)
	hcm := &hcmv3.HttpConnectionManager{}
	if err := l.FilterChains[0].Filters[0].GetTypedConfig().UnmarshalTo(hcm); err != nil {
		t.Fatal(err)
	}
	// What no JSON can say: a payload of an unknown type, and one that is cut.
	hcm.HttpFilters = append(hcm.HttpFilters,
		&hcmv3.HttpFilter{Name: "unknown", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: &anypb.Any{TypeUrl: "type.googleapis.com/no.Such"}}},
		&hcmv3.HttpFilter{Name: "cut", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: &anypb.Any{
			TypeUrl: "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz", Value: []byte{0x0a, 0xff}}}})
	l.FilterChains[0].Filters[0].ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: packed(t, hcm)}
	return l
}

func packed(t testing.TB, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestWalk(t *testing.T) {
	const (
		filter   = "filter_chains[0].filters[0]"
		hcm      = filter + ".typed_config"
		filters  = hcm + ".http_filters"
		perRoute = hcm + ".route_config.typed_per_filter_config"
	)
	want := strings.Join([]string{
		`"" Listener`,
		"address Address",
		"address.socket_address SocketAddress",
		"filter_chains[0] FilterChain",
		filter + " Filter",
		hcm + " Any",
		hcm + " HttpConnectionManager",
		hcm + ".route_config RouteConfiguration",
		perRoute + `["a.b"] Any`,
		perRoute + `["a.b"] StringValue`,
		perRoute + `["b"] Any`,
		perRoute + `["b"] FilterConfig`,
		perRoute + `["b"].config Any`,
		perRoute + `["b"].config ExtAuthzPerRoute`,
		perRoute + `["empty"] Any`,
		filters + "[0] HttpFilter",
		filters + "[0].typed_config Any",
		filters + "[0].typed_config ExtAuthz",
		filters + "[0].typed_config.grpc_service GrpcService",
		filters + "[0].typed_config.grpc_service.envoy_grpc EnvoyGrpc",
		filters + "[1] HttpFilter",
		filters + "[1].typed_config Any",
		filters + "[1].typed_config TypedStruct",
		filters + "[1].typed_config.value ExtAuthz",
		filters + "[1].typed_config.value.grpc_service GrpcService",
		filters + "[1].typed_config.value.grpc_service.envoy_grpc EnvoyGrpc",
		filters + "[2] HttpFilter",
		filters + "[2].typed_config Any",
		filters + "[2].typed_config TypedStruct",
		filters + "[2].typed_config.value ExtAuthz",
		filters + "[2].typed_config.value.http_service HttpService",
		filters + "[2].typed_config.value.http_service.server_uri HttpUri",
		filters + "[3] HttpFilter",
		filters + "[3].typed_config Any",
		filters + `[3].typed_config TypedStruct: unknown type "type.googleapis.com/no.Such"`,
		filters + "[3].typed_config.value Struct",
		filters + "[4] HttpFilter",
		filters + "[4].typed_config Any",
		filters + "[4].typed_config TypedStruct: error",
		filters + "[4].typed_config.value Struct",
		filters + "[5] HttpFilter",
		filters + "[5].typed_config Any",
		filters + "[5].typed_config TypedStruct",
		filters + "[5].typed_config.value ExtAuthz",
		filters + "[6] HttpFilter",
		filters + "[6].typed_config Any: error",
		filters + "[7] HttpFilter",
		filters + "[7].typed_config Any: error",
	}, "\n")
	m := listener(t)
	before := proto.CloneOf(m)
	for range 20 { // the same each time: maps have no order of their own
		var got []string
		xds.Walk(m, func(n *xds.Node) {
			path := string(n.Path())
			if path == "" {
				path = `""`
			}
			line := path + " " + string(n.Name().Name())
			if n.Err != nil {
				line += ": " + n.Err.Error()
				if !strings.HasPrefix(n.Err.Error(), "unknown type") { // protobuf's words, not ours
					line = line[:len(line)-len(n.Err.Error())] + "error"
				}
			}
			got = append(got, line)
		})
		if diff := cmp.Diff(want, strings.Join(got, "\n")); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
	if diff := cmp.Diff(before, m, protocmp.Transform()); diff != "" {
		t.Errorf("Walk changes the message:\n%s", diff)
	}
}

func TestNode(t *testing.T) {
	fields := make(map[string]string)
	xds.Walk(listener(t), func(n *xds.Node) {
		switch n.Message.(type) {
		case *corev3.GrpcService_EnvoyGrpc, *authzv3.ExtAuthzPerRoute:
			hcm, at := xds.Enclosing[*hcmv3.HttpConnectionManager](n)
			if hcm == nil || at == nil || at.Path() != "filter_chains[0].filters[0].typed_config" {
				t.Errorf("%s: no HttpConnectionManager around it", n.Path())
			}
			if l, at := xds.Enclosing[*listenerv3.Listener](n); l.GetName() != "l" || at.Path() != "" {
				t.Errorf("%s: no Listener around it", n.Path())
			}
			if c, at := xds.Enclosing[*clusterv3.Cluster](n); c != nil || at != nil {
				t.Errorf("%s: a Cluster around it", n.Path())
			}
		}
		fields[string(n.Path())+" "+string(n.Name().Name())] = string(n.Field())
	})
	for at, want := range map[string]string{
		" Listener": "",
		"filter_chains[0].filters[0].typed_config Any":                                           "envoy.config.listener.v3.Filter.typed_config",
		"filter_chains[0].filters[0].typed_config HttpConnectionManager":                         "envoy.config.listener.v3.Filter.typed_config",
		"filter_chains[0].filters[0].typed_config.http_filters[1].typed_config.value ExtAuthz":   "envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter.typed_config",
		`filter_chains[0].filters[0].typed_config.route_config.typed_per_filter_config["b"] Any`: "envoy.config.route.v3.RouteConfiguration.typed_per_filter_config",
	} {
		if got, ok := fields[at]; !ok || got != want {
			t.Errorf("the field of %s is %q, want %q", at, got, want)
		}
	}
}

func TestUses(t *testing.T) {
	routes := parse(t, &routev3.RouteConfiguration{}, `{
	  "name": "r",
	  "typed_per_filter_config": {"b": {}, "a.b": {}},
	  "virtual_hosts": [{"name": "v", "routes": [
	    {"name": "one", "route": {"cluster": "c", "request_mirror_policies": [{"cluster": "m"}, {"cluster": ""}]}},
	    {"route": {"cluster_header": "h"}},
	    {"route": {"weighted_clusters": {"clusters": [{"name": "w1"}, {"name": "w2"}]}}}]}]}`)
	service := parse(t, &corev3.ApiConfigSource{}, `{"cluster_names": ["x", "", "y"]}`)
	for _, c := range []struct {
		message proto.Message
		want    []string
	}{
		{routes, []string{
			`envoy.config.route.v3.RouteConfiguration.typed_per_filter_config "a.b" typed_per_filter_config["a.b"]`,
			`envoy.config.route.v3.RouteConfiguration.typed_per_filter_config "b" typed_per_filter_config["b"]`,
			`envoy.config.route.v3.RouteAction.cluster "c" virtual_hosts[0].routes[0].route.cluster`,
			`envoy.config.route.v3.RouteAction.RequestMirrorPolicy.cluster "m" virtual_hosts[0].routes[0].route.request_mirror_policies[0].cluster`,
			`envoy.config.route.v3.RouteAction.cluster_header "h" virtual_hosts[0].routes[1].route.cluster_header`,
			`envoy.config.route.v3.WeightedCluster.ClusterWeight.name "w1" virtual_hosts[0].routes[2].route.weighted_clusters.clusters[0].name`,
			`envoy.config.route.v3.WeightedCluster.ClusterWeight.name "w2" virtual_hosts[0].routes[2].route.weighted_clusters.clusters[1].name`,
		}},
		{service, []string{
			`envoy.config.core.v3.ApiConfigSource.cluster_names "x" cluster_names[0]`,
			`envoy.config.core.v3.ApiConfigSource.cluster_names "y" cluster_names[2]`,
		}},
		{&routev3.RouteConfiguration{}, nil},
	} {
		var got []string
		xds.Walk(c.message, func(n *xds.Node) {
			for _, u := range n.Uses() {
				got = append(got, fmt.Sprintf("%s %q %s", u.Field, u.Name, u.Path()))
			}
		})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

func TestEdit(t *testing.T) {
	rename := func(n *xds.Node) bool {
		switch m := n.Message.(type) {
		case *corev3.GrpcService_EnvoyGrpc:
			m.ClusterName = "new " + m.ClusterName
			return true
		case *corev3.HttpUri:
			m.HttpUpstreamType = &corev3.HttpUri_Cluster{Cluster: "new " + m.GetCluster()}
			return true
		}
		return false
	}
	m := listener(t)
	before := proto.CloneOf(m)
	if xds.ResourceOf(xds.Key{}, m).Edit(func(*xds.Node) bool { return false }) {
		t.Error("nothing was changed, but Edit says so")
	}
	if diff := cmp.Diff(before, m, protocmp.Transform()); diff != "" {
		t.Errorf("Edit changes what it need not:\n%s", diff)
	}
	if !xds.ResourceOf(xds.Key{}, m).Edit(rename) {
		t.Error("Edit says that nothing was changed")
	}
	var names, structs []string
	xds.Walk(m, func(n *xds.Node) {
		switch m := n.Message.(type) {
		case *corev3.GrpcService_EnvoyGrpc:
			names = append(names, m.ClusterName)
		case *corev3.HttpUri:
			names = append(names, m.GetCluster())
		case *xdstypev3.TypedStruct:
			structs = append(structs, string(n.Path()))
		case *udpatypev1.TypedStruct:
			structs = append(structs, string(n.Path()))
		}
	})
	if diff := cmp.Diff([]string{"new authz", "new from struct", "new from udpa"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	// A TypedStruct that was changed is the message it stood for, the others stay.
	const filters = "filter_chains[0].filters[0].typed_config.http_filters"
	if diff := cmp.Diff([]string{filters + "[3].typed_config", filters + "[4].typed_config", filters + "[5].typed_config"}, structs); diff != "" {
		t.Errorf("TypedStructs (-want +got):\n%s", diff)
	}
	hcm := &hcmv3.HttpConnectionManager{}
	if err := m.FilterChains[0].Filters[0].GetTypedConfig().UnmarshalTo(hcm); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"ExtAuthz", "ExtAuthz", "ExtAuthz", "TypedStruct"} {
		if got := hcm.HttpFilters[i].GetTypedConfig().MessageName().Name(); string(got) != want {
			t.Errorf("http_filters[%d] holds a %s, want a %s", i, got, want)
		}
	}
	if !xds.ResourceOf(xds.Key{}, &clusterv3.Cluster{}).Edit(func(*xds.Node) bool { return true }) {
		t.Error("the root was changed, but Edit says no")
	}
}

// TestSearch compares a Search with what a Walk meets of the wanted types.
func TestSearch(t *testing.T) {
	m := parse(t, &clusterv3.Cluster{}, `{
	  "name": "c", "metadata": {"filter_metadata": {"a": {"b": 1}}},
	  "load_assignment": {"endpoints": [{"lb_endpoints": [{"metadata": {"filter_metadata": {"c": {}}}, "endpoint": {"address": {"pipe": {"path": "p"}}}}]}]},
	  "transport_socket": {"name": "t", "typed_config": {"@type": "type.googleapis.com/xds.type.v3.TypedStruct",
	    "type_url": "type.googleapis.com/envoy.config.core.v3.Metadata", "value": {"filter_metadata": {"d": {}}}}}
	}`)
	var want, got []string
	left := 0
	xds.Walk(m, func(n *xds.Node) {
		if left++; n.Name() == "google.protobuf.Struct" {
			want = append(want, string(n.Path()))
		}
	})
	xds.NewSearch("google.protobuf.Struct").Walk(m, func(n *xds.Node) {
		if left--; n.Name() == "google.protobuf.Struct" {
			got = append(got, string(n.Path()))
		}
		if n.Name() == "envoy.config.endpoint.v3.Endpoint" {
			t.Errorf("%s holds no Struct", n.Path())
		}
	})
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 3 || left <= 0 {
		t.Errorf("%d messages were left out; -want +got:\n%s", left, diff)
	}
}

// TestFactsOfEdit: an Edit of a resource finds the facts that a walk of what it becomes finds.
func TestFactsOfEdit(t *testing.T) {
	edits := map[string]func(*xds.Node) bool{
		"none": func(*xds.Node) bool { return false },
		"an Any": func(n *xds.Node) bool {
			m, ok := n.Message.(*corev3.GrpcService_EnvoyGrpc)
			if ok {
				m.ClusterName = "new"
			}
			return ok
		},
		"a TypedStruct": func(n *xds.Node) bool {
			m, ok := n.Message.(*corev3.HttpUri)
			if ok {
				m.HttpUpstreamType = &corev3.HttpUri_Cluster{Cluster: "new"}
			}
			return ok
		},
		"to a secret": func(n *xds.Node) bool {
			m, ok := n.Message.(*corev3.DataSource)
			if ok {
				m.Specifier = &corev3.DataSource_InlineString{InlineString: "the key"}
			}
			return ok
		},
		"from ads": func(n *xds.Node) bool {
			s, ok := n.Subscription()
			if ok {
				s.Set(&corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Path{Path: "/x"}})
			}
			return ok
		},
	}
	for name, edit := range edits {
		m := listener(t)
		m.FilterChains[0].TransportSocket = &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed(t, parse(t, &tlsv3.DownstreamTlsContext{}, `{
			"common_tls_context": {
				"tls_certificates": [{"certificate_chain": {"filename": "a"}, "private_key": {"filename": "b"}}],
				"validation_context_sds_secret_config": {"name": "ca", "sds_config": {"ads": {}}}
			}
		}`))}}
		r := xds.ResourceOf(xds.Key{Type: xds.Listener}, m)
		r.Edit(edit)
		describe := func(f *xds.Facts) (list []string) {
			for _, s := range f.Subscriptions {
				list = append(list, fmt.Sprint("subscription ", s.NamePath, s.Name, s.SourcePath, xds.PathOf(s.Source)))
			}
			for _, n := range append(f.ConfigSources, f.FileData...) {
				list = append(list, fmt.Sprint(n.Name(), n.Path()))
			}
			return append(list, fmt.Sprint("secret ", f.HoldsSecret))
		}
		canonical, err := r.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		if want := marshal(t, m); !bytes.Equal(canonical, want) {
			t.Errorf("%s: Canonical is not what Marshal makes of the message", name)
		}
		fresh := xds.ResourceOf(r.Key, m)
		if diff := cmp.Diff(describe(fresh.Facts()), describe(r.Facts())); diff != "" {
			t.Errorf("%s: facts (-of a walk +of the edit):\n%s", name, diff)
		}
	}
}
