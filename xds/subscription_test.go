package xds_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"xdspub/xds"
)

func TestSubscription(t *testing.T) {
	hcm := func(text string) proto.Message { return parse(t, &hcmv3.HttpConnectionManager{}, text) }
	cluster := func(text string) proto.Message { return parse(t, &clusterv3.Cluster{}, text) }
	for name, c := range map[string]struct {
		message proto.Message
		want    []string // target, name, where the name and the source stand, the source
	}{
		"eds":                {cluster(`{"name": "c", "type": "EDS", "eds_cluster_config": {"service_name": "s", "eds_config": {"ads": {}}}}`), []string{"EDS s eds_cluster_config.service_name eds_cluster_config.eds_config ads"}},
		"eds by its name":    {cluster(`{"name": "c", "type": "EDS", "eds_cluster_config": {"eds_config": {"self": {}}}}`), []string{"EDS c name eds_cluster_config.eds_config self"}},
		"eds without config": {cluster(`{"name": "c", "type": "EDS"}`), []string{"EDS c name eds_cluster_config.eds_config none"}},
		"static":             {cluster(`{"name": "c", "type": "STATIC", "eds_cluster_config": {"eds_config": {"ads": {}}}}`), nil},
		"no type":            {cluster(`{"name": "c"}`), nil},
		"custom type":        {cluster(`{"name": "c", "cluster_type": {"name": "envoy.clusters.aggregate"}}`), nil},
		"rds":                {hcm(`{"rds": {"route_config_name": "r", "config_source": {"path_config_source": {"path": "p"}}}}`), []string{"RDS r rds.route_config_name rds.config_source path_config_source"}},
		"srds": {hcm(`{"scoped_routes": {"name": "s", "rds_config_source": {"ads": {}}, "scoped_rds": {"scoped_rds_config_source": {"self": {}}}}}`),
			[]string{"RDS  scoped_routes scoped_routes.rds_config_source ads", "SRDS  scoped_routes.scoped_rds scoped_routes.scoped_rds.scoped_rds_config_source self"}},
		"vhds":           {parse(t, &routev3.RouteConfiguration{}, `{"name": "r", "vhds": {"config_source": {"ads": {}}}}`), []string{"VHDS r vhds vhds.config_source ads"}},
		"vhds in an hcm": {hcm(`{"route_config": {"name": "r", "vhds": {}}}`), []string{"VHDS r route_config.vhds route_config.vhds.config_source none"}},
		"sds": {parse(t, &tlsv3.CommonTlsContext{}, `{"tls_certificate_sds_secret_configs": [{"name": "a", "sds_config": {"ads": {}}}, {"name": "b"}]}`),
			[]string{"SDS a tls_certificate_sds_secret_configs[0].name tls_certificate_sds_secret_configs[0].sds_config ads",
				"SDS b tls_certificate_sds_secret_configs[1].name tls_certificate_sds_secret_configs[1].sds_config none"}},
		"ecds": {hcm(`{"http_filters": [{"name": "f", "config_discovery": {"config_source": {"ads": {}}}}]}`),
			[]string{"ECDS f http_filters[0].name http_filters[0].config_discovery.config_source ads"}},
		"ecds of a listener filter": {parse(t, &listenerv3.Listener{}, `{"listener_filters": [{"name": "f", "config_discovery": {}}]}`),
			[]string{"ECDS f listener_filters[0].name listener_filters[0].config_discovery.config_source none"}},
		"in an Any": {parse(t, &listenerv3.Listener{}, `{"filter_chains": [{"filters": [{"typed_config": {
		    "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", "rds": {"route_config_name": "r"}}}]}]}`),
			[]string{"RDS r filter_chains[0].filters[0].typed_config.rds.route_config_name filter_chains[0].filters[0].typed_config.rds.config_source none"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, walk := range []func(proto.Message, func(*xds.Node)){xds.Walk, xds.NewSearch(xds.Subscribing...).Walk} {
				var got []string
				walk(c.message, func(n *xds.Node) {
					if s, ok := n.Subscription(); ok {
						got = append(got, fmt.Sprintf("%s %s %s %s %s", s.Target, s.Name, s.NamePath, s.SourcePath, specifier(s.Source)))
					}
				})
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Fatalf("-want +got:\n%s", diff)
				}
			}
			// What Set sets is found again, in an Any too.
			source := &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{Path: "set"}}}
			changed := xds.ResourceOf(xds.Key{}, c.message).Edit(func(n *xds.Node) bool {
				s, ok := n.Subscription()
				if ok {
					s.Set(source)
				}
				return ok
			})
			if changed != (len(c.want) > 0) {
				t.Errorf("changed: %v", changed)
			}
			xds.Walk(c.message, func(n *xds.Node) {
				if s, ok := n.Subscription(); ok && s.Source.GetPathConfigSource().GetPath() != "set" {
					t.Errorf("%s: the config source is %v after Set", s.SourcePath, s.Source)
				}
			})
		})
	}
}

func specifier(source *corev3.ConfigSource) string {
	if source == nil {
		return "none"
	}
	r := source.ProtoReflect()
	return string(r.WhichOneof(r.Descriptor().Oneofs().ByName("config_source_specifier")).Name())
}

// TestSubscriptionsAreComplete sets a config source in each field of the API
// that can hold one, and wants Subscription to see it, or the reason here why not.
func TestSubscriptionsAreComplete(t *testing.T) {
	elsewhere := []string{ // config sources of the bootstrap, of ADS only, or of types that a source tree does not hold
		"envoy.config.bootstrap.v3.",
		"envoy.config.cluster.v3.Cluster.lrs_server",
		"envoy.config.listener.v3.Listener.FcdsConfig.config_source",
		"envoy.extensions.access_loggers.filters.process_ratelimit.v3.DynamicTokenBucket.config_source",
		"envoy.extensions.clusters.aggregate.v3.AggregateClusterResource.config_source",
		"envoy.extensions.filters.http.on_demand.v3.OnDemandCds.source",
		"envoy.extensions.filters.network.dubbo_proxy.v3.Drds.config_source",
		"envoy.extensions.filters.network.generic_proxy.v3.GenericRds.config_source",
		"envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.OnDemand.odcds_config",
		"envoy.extensions.filters.network.thrift_proxy.v3.Trds.config_source",
		"envoy.extensions.transport_sockets.tls.cert_selectors.on_demand_secret.v3.Config.config_source",
	}
	seen := make(map[string]bool)
	for _, line := range lines(t, "testdata/holders.txt") {
		holder, carrier, _ := strings.Cut(line, " -> ")
		if carrier != "envoy.config.core.v3.ConfigSource" && carrier != "envoy.config.core.v3.ExtensionConfigSource" {
			continue
		}
		field := protoreflect.FullName(holder)
		mt, err := protoregistry.GlobalTypes.FindMessageByName(field.Parent())
		if err != nil {
			t.Fatal(err)
		}
		m := mt.New()
		fd := m.Descriptor().Fields().ByName(field.Name())
		if fd.IsList() {
			m.Mutable(fd).List().AppendMutable()
		} else {
			m.Mutable(fd)
		}
		root := m.Interface()
		switch c := root.(type) {
		case *clusterv3.Cluster_EdsClusterConfig: // the cluster around it subscribes
			root = &clusterv3.Cluster{ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}, EdsClusterConfig: c}
		case *corev3.ExtensionConfigSource:
			root = &listenerv3.ListenerFilter{ConfigType: &listenerv3.ListenerFilter_ConfigDiscovery{ConfigDiscovery: c}}
		}
		subscribes := false
		xds.Walk(root, func(n *xds.Node) {
			_, ok := n.Subscription()
			subscribes = subscribes || ok
		})
		i := slices.IndexFunc(elsewhere, func(prefix string) bool { return strings.HasPrefix(holder, prefix) })
		if i >= 0 {
			seen[elsewhere[i]] = true
		}
		if subscribes == (i >= 0) {
			t.Errorf("%s: Subscription says %v", holder, subscribes)
		}
	}
	for _, prefix := range elsewhere {
		if !seen[prefix] {
			t.Errorf("%s is no holder any more", prefix)
		}
	}
}

func TestServes(t *testing.T) {
	snapshot := xds.NewSnapshot([]*xds.Resource{resource(t, &tlsv3.Secret{Name: "here"}, "")})
	source := func(text string) *corev3.ConfigSource { return parse(t, &corev3.ConfigSource{}, text) }
	sources := map[string]*corev3.ConfigSource{
		"none":               nil,
		"empty":              {},
		"ads":                source(`{"ads": {}}`),
		"self":               source(`{"self": {}}`),
		"path":               source(`{"path": "p"}`),
		"path_config_source": source(`{"path_config_source": {"path": "p"}}`),
		"api_config_source":  source(`{"api_config_source": {"api_type": "GRPC"}}`),
	}
	for _, c := range []struct {
		target *xds.Type
		name   string
		from   []string
	}{
		{xds.Endpoints, "anything", []string{"ads", "empty", "none", "self"}},
		{xds.Secret, "here", []string{"ads", "empty", "none", "self"}},
		{xds.Secret, "static", []string{"ads", "self"}},
		{xds.RouteConfiguration, "r", []string{"ads", "self"}},
		{xds.ScopedRoutes, "", []string{"ads", "self"}},
		{xds.VirtualHost, "r", []string{"ads", "self"}},
		{xds.ExtensionConfig, "e", []string{"ads", "self"}},
	} {
		var served []string
		for name, s := range sources {
			if snapshot.Serves(xds.Subscription{Target: c.target, Name: c.name, Source: s}) {
				served = append(served, name)
			}
			if want := name == "ads" || name == "self"; xds.FromSnapshot(s) != want {
				t.Errorf("FromSnapshot(%s) = %v", name, !want)
			}
		}
		slices.Sort(served)
		if diff := cmp.Diff(c.from, served); diff != "" {
			t.Errorf("%s %q is served where the source says (-want +got):\n%s", c.target, c.name, diff)
		}
	}
}
