package validate

import (
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

var misplacedExtension = &Rule{
	Code: "misplaced-extension",
	Doc: `An extension stands where Envoy looks for one of another kind, or without configuration.

Envoy finds an extension by the type of its typed_config, among those of the kind
that the place is for; the name beside it is free. An HTTP filter among network
filters, a DownstreamTlsContext on a cluster, a name alone: "Didn't find a
registered implementation for 'x' with type URL: ''". A google.protobuf.Struct is
no configuration either. In a few places the name decides: stateful sessions,
certificate validators, protocol options, Dubbo filters. For some, such as header
validators, tap sinks and private key providers, the released binary holds none.

An HTTP filter has a type of its own for routes where that differs ("Unable to
unpack as …BufferPerRoute"), and some take no configuration for a route at all
("doesn't support virtual host or route specific configurations").

upstream_config is a warning: Envoy goes on with its own connection pool. What
stands in a matcher is not judged here.`,
	Messages: slotMessages(),
	Node: func(p *Pass, n *xds.Node) {
		for _, s := range slotsOf(n.Message.ProtoReflect().Descriptor()) {
			for _, e := range s.extensions(n) {
				if isRead(n, s.Field) {
					checkExtension(p, n, s, e)
				}
			}
		}
	},
}

// isRead tells whether Envoy looks at a slot just here, when it takes the
// resource.
func isRead(n *xds.Node, slot protoreflect.FullName) bool {
	switch m := n.Message.(type) {
	case *clusterv3.Cluster:
		return slot.Name() != "typed_dns_resolver_config" ||
			m.GetClusterType() == nil && (m.GetType() == clusterv3.Cluster_STRICT_DNS || m.GetType() == clusterv3.Cluster_LOGICAL_DNS)
	case *clusterv3.LoadBalancingPolicy_Policy:
		return false // as a list: Envoy takes the first that it holds
	case *hcmv3.HttpFilter:
		return !m.GetIsOptional()
	case *routev3.FilterConfig:
		return !m.GetDisabled() && (!m.GetIsOptional() || m.GetConfig() == nil)
	}
	switch n.Name() {
	case "envoy.config.core.v3.RetryPolicy.RetryHostPredicate", "envoy.config.core.v3.RetryPolicy.RetryPriority":
		return !inside(n, "envoy.config.core.v3.GrpcService")
	case "envoy.config.common.key_value.v3.KeyValueStoreConfig":
		return !inside(n, "envoy.config.core.v3.AlternateProtocolsCacheOptions")
	case "envoy.extensions.filters.http.composite.v3.FilterChainConfiguration":
		return n.CategoryAt(xds.Slot{Category: "envoy.filters.http"}) == "envoy.filters.http"
	}
	return true
}

func checkExtension(p *Pass, n *xds.Node, s slot, e extension) {
	category := n.CategoryAt(s.Slot)
	if len(xds.Extensions(category)) == 0 && (e.config != nil || s.ByName) {
		if e.config != nil || e.name != "" {
			p.Report(Finding{Path: e.path(), Message: fmt.Sprintf("the Envoy 1.40.0 binary holds no extension for %s", s.Field.Name()), Help: "remove it"})
		}
		return
	}
	if e.config == nil {
		checkBare(p, s, e, category)
		return
	}
	config := typeOf(e.config)
	if config == "" || !xds.InEnvoy(config) || !knownType(string(config)) {
		return // unknown-type
	}
	if config == "envoy.config.route.v3.FilterConfig" && nameIn(e.config.GetTypeUrl()) == config && s.Field.Name() == "typed_per_filter_config" {
		return // it holds the configuration, and is a slot itself
	}
	if s.ByName {
		checkNamed(p, s, e, category, config)
		return
	}
	found, ok := xds.ExtensionOf(category, config)
	if !ok {
		p.Report(Finding{
			Path:    e.at(),
			Message: fmt.Sprintf("%s configures no %s", config, kind(category)),
			Help:    instead(e, category, config),
			Warning: s.Category == "envoy.upstreams",
		})
		return
	}
	checkRole(p, n, s, e, found, config)
}

// checkBare judges an extension without typed_config.
func checkBare(p *Pass, s slot, e extension, category string) {
	switch {
	case s.Bare || s.field.Message().FullName() == "envoy.config.core.v3.TypedExtensionConfig" || s.field.Message().FullName() == "xds.core.v3.TypedExtensionConfig":
		return // nothing needed, or field-constraint
	case s.Category == "envoy.clusters":
		if _, ok := xds.ExtensionNamed(category, e.name); ok {
			return
		}
		p.Report(Finding{
			Path:    e.path().Field("name"),
			Message: fmt.Sprintf("unknown cluster type %q", e.name),
			Help:    "give it a typed_config, or the name of one that works without, such as envoy.cluster.strict_dns",
		})
		return
	}
	p.Report(Finding{
		Path:    e.path(),
		Message: fmt.Sprintf("%s %q has no %s", kind(category), e.name, lastStep(s, e)),
		Help:    instead(e, category, ""),
	})
}

// lastStep is what the field of the configuration is called.
func lastStep(s slot, e extension) string {
	if e.inner != "" {
		return string(e.inner)
	}
	return string(s.field.Name())
}

// checkNamed judges an extension that Envoy finds by its name.
func checkNamed(p *Pass, s slot, e extension, category string, config protoreflect.FullName) {
	want, ok := configOfNamed(category, e.name)
	switch {
	case category == "envoy.upstream_options" && !ok:
		return // unresolved-reference
	case !ok:
		path := e.path().Field("name")
		if s.Field.Name() == "config" {
			path = xds.Path(strings.TrimSuffix(string(e.path()), ".config")).Field("name")
		}
		var names []string
		for _, known := range xds.Extensions(category) {
			names = append(names, known.Name)
		}
		p.Report(Finding{
			Path:    path,
			Message: fmt.Sprintf("unknown extension %q: Envoy goes by the name here", e.name),
			Help:    "the Envoy 1.40.0 binary has " + quoted(names),
		})
	case want != "" && want != config && len(e.config.GetValue()) > 0 && !isStruct(e):
		p.Report(Finding{
			Path:    e.at(),
			Message: fmt.Sprintf("%s is no configuration of %q", config, e.name),
			Help:    "give it \"@type\": " + xds.URLPrefix + string(want),
		})
	}
}

// configOfNamed is the configuration that an extension of that name takes, empty
// where that is not known.
func configOfNamed(category, name string) (protoreflect.FullName, bool) {
	// Some network filters have options for clusters, under the filter's name.
	switch name {
	case "envoy.filters.network.redis_proxy":
		return "envoy.extensions.filters.network.redis_proxy.v3.RedisProtocolOptions", true
	case "envoy.filters.network.thrift_proxy":
		return "envoy.extensions.filters.network.thrift_proxy.v3.ThriftProtocolOptions", true
	case "envoy.upstreams.http.http_protocol_options":
		name = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
	case "envoy.upstreams.tcp.tcp_protocol_options":
		name = "envoy.extensions.upstreams.tcp.v3.TcpProtocolOptions"
	}
	e, ok := xds.ExtensionNamed(category, name)
	return e.Config, ok
}

// checkRole judges the two types that an HTTP filter can have: one in the chain,
// one for routes. Without content Envoy takes either for the other.
func checkRole(p *Pass, n *xds.Node, s slot, e extension, found xds.Extension, config protoreflect.FullName) {
	onRoute := s.Field.Name() == "typed_per_filter_config" || n.Name() == "envoy.config.route.v3.FilterConfig"
	want := found.Config
	if onRoute && found.Route != "" {
		want = found.Route
	}
	switch {
	case onRoute && found.NoRoute:
		p.Report(Finding{
			Path:    e.at(),
			Message: fmt.Sprintf("%s takes no configuration for a route", found.Name),
			Help:    "configure it in the filter chain; envoy.config.route.v3.FilterConfig with disabled: true turns it off here",
		})
	case want != config && len(e.config.GetValue()) > 0 && !isStruct(e):
		where := "in the filter chain"
		if onRoute {
			where = "for a route"
		}
		p.Report(Finding{
			Path:    e.at(),
			Message: fmt.Sprintf("%s is not what %s takes %s", config, found.Name, where),
			Help:    "give it \"@type\": " + xds.URLPrefix + string(want),
		})
	}
}

// isStruct tells whether a TypedStruct stands for the configuration: Envoy reads
// its fields as those of the type that it wants.
func isStruct(e extension) bool { return typeOf(e.config) != nameIn(e.config.GetTypeUrl()) }

// kind is what an extension of a category is called.
func kind(category string) string {
	if noun, ok := kinds[category]; ok {
		return noun
	}
	return "extension of " + category
}

var kinds = map[string]string{
	"envoy.access_loggers":               "access log",
	"envoy.clusters":                     "cluster type",
	"envoy.compression.compressor":       "compressor library",
	"envoy.compression.decompressor":     "decompressor library",
	"envoy.filters.http":                 "HTTP filter",
	"envoy.filters.http.upstream":        "upstream HTTP filter",
	"envoy.filters.listener":             "listener filter",
	"envoy.filters.network":              "network filter",
	"envoy.filters.udp_listener":         "UDP listener filter",
	"envoy.formatter":                    "formatter",
	"envoy.health_checkers":              "health checker",
	"envoy.load_balancing_policies":      "load balancing policy",
	"envoy.network.dns_resolver":         "DNS resolver",
	"envoy.retry_host_predicates":        "retry host predicate",
	"envoy.retry_priorities":             "retry priority",
	"envoy.tracers":                      "tracer",
	"envoy.transport_sockets.downstream": "transport socket for a listener",
	"envoy.transport_sockets.upstream":   "transport socket for a cluster",
}

// instead says what would be right.
func instead(e extension, category string, config protoreflect.FullName) string {
	if found, ok := xds.ExtensionNamed(category, e.name); ok && found.Config != "" && found.Config != config {
		return "give it \"@type\": " + xds.URLPrefix + string(found.Config)
	}
	if categories := xds.Categories(config); len(categories) > 0 {
		var nouns []string
		for _, other := range categories {
			nouns = append(nouns, kind(other))
		}
		return "it is for: " + strings.Join(nouns, ", ")
	}
	return "Envoy finds an extension by the type of its configuration, not by its name"
}
