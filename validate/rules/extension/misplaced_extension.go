package extension

import (
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var misplacedExtension = &validate.Rule{
	Code: "misplaced-extension",
	Doc: `An extension has the wrong type for its field, or no configuration.

Envoy finds an extension by the type of its typed_config, among those of the kind that the
field accepts; the name beside it is free. So it rejects an HTTP filter among network
filters, a DownstreamTlsContext in a cluster, and a name without typed_config ("Didn't find
a registered implementation for 'x' with type URL: ''"). A google.protobuf.Struct is not a
configuration either. In a few fields the name decides: stateful sessions, Dubbo filters and
the resource monitor for downstream connections. For some fields, such as connection
balancers, the released binary has no extension. In a filter chain, Envoy rejects the
message that an HTTP filter has for routes ("Unable to unpack as …Buffer").

Envoy accepts a custom_value of a rate limit quota, and crashes at a request. An
upstream_config of the wrong type is a warning: Envoy uses its own connection pool. This
rule does not check matchers and typed_per_filter_config.`,
	MessagesOf: func(v *envoyapi.Version, message protoreflect.FullName) bool {
		return len(v.ExtensionPointsOf(message)) > 0
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		fields := n.Message.ProtoReflect().Descriptor().Fields()
		for _, point := range p.Envoy.ExtensionPointsOf(n.Name()) {
			s := extensionPoint{point, fields.ByName(point.Field.Name())}
			for _, e := range s.extensions(n) {
				if isRead(p.Envoy, n, s.Field) {
					checkExtension(p, n, s, e)
				}
			}
		}
	},
}

// isRead reports whether Envoy reads an extension point of the node, and this rule judges it. Other rules judge
// cluster types, load balancing policies, protocol options, the filters of routes, header and certificate
// validators, and private keys.
func isRead(v *envoyapi.Version, n *xds.Node, field protoreflect.FullName) bool {
	switch m := n.Message.(type) {
	case *clusterv3.Cluster:
		switch field.Name() {
		case "typed_extension_protocol_options":
			return false
		case "typed_dns_resolver_config":
			return m.GetClusterType() == nil && (m.GetType() == clusterv3.Cluster_STRICT_DNS || m.GetType() == clusterv3.Cluster_LOGICAL_DNS)
		}
		return true
	case *hcmv3.HttpFilter:
		return !m.GetIsOptional()
	case *routev3.ClusterSpecifierPlugin:
		return !m.GetIsOptional()
	}
	switch n.Name() {
	case "envoy.config.cluster.v3.Cluster.CustomClusterType", "envoy.config.cluster.v3.LoadBalancingPolicy.Policy", "envoy.config.route.v3.FilterConfig":
		return false
	case "envoy.config.core.v3.RetryPolicy.RetryHostPredicate", "envoy.config.core.v3.RetryPolicy.RetryPriority":
		return !facts.Inside(n, "envoy.config.core.v3.GrpcService")
	case "envoy.config.common.key_value.v3.KeyValueStoreConfig":
		return !facts.Inside(n, "envoy.config.core.v3.AlternateProtocolsCacheOptions")
	case "envoy.extensions.filters.http.composite.v3.FilterChainConfiguration":
		return v.CategoryAt(n, "envoy.filters.http") == "envoy.filters.http"
	}
	switch field.Name() {
	case "typed_per_filter_config", "header_validation_config", "typed_header_validation_config", "custom_validator_config":
		return false
	}
	return n.Name() != "envoy.extensions.transport_sockets.tls.v3.PrivateKeyProvider"
}

func checkExtension(p *validate.Pass, n *xds.Node, s extensionPoint, e extension) {
	if e.config != nil && p.Envoy.Registry().Owns(xds.PayloadType(e.config)) {
		return // xdspub does not know the extension points of the user's own types
	}
	category := p.Envoy.CategoryAt(n, s.Category)
	if len(p.Envoy.Extensions(category)) == 0 && (e.config != nil || s.ByName) {
		if e.config != nil || e.name != "" {
			p.Report(validate.Finding{Path: e.path(), Message: fmt.Sprintf("the Envoy %s binary holds no "+
				"extension for %s", p.Envoy.Name, s.Field.Name()), Help: "remove it"})
		}
		return
	}
	if e.config == nil {
		checkBare(p, s, e, category)
		return
	}
	config := xds.PayloadType(e.config)
	if config == "" || !p.Envoy.Holds(config) {
		return // reported by unknown-type
	}
	if s.ByName {
		checkNamed(p, s, e, category, config)
		return
	}
	found, ok := p.Envoy.ExtensionOf(category, config)
	for _, also := range s.Also {
		if !ok {
			found, ok = p.Envoy.ExtensionOf(also, config)
		}
	}
	if !ok {
		if isListenerFilter(p.Envoy, config) && s.Category == "envoy.filters.listener" {
			return // reported by listener-filter
		}
		p.Report(validate.Finding{
			Path:    e.at(),
			Message: fmt.Sprintf("%s does not configure %s", config, kind(category)),
			Help:    instead(p.Envoy, e, category, config),
			Warning: s.Category == "envoy.upstreams",
			Eager:   e.at() == "tracing.http.typed_config",
		})
		return
	}
	if found.Config != config && len(e.config.GetValue()) > 0 && !isStruct(e) {
		p.Report(validate.Finding{
			Path:    e.at(),
			Message: fmt.Sprintf("%s is not the configuration of %s in a filter chain", config, found.Name),
			Help:    "write \"@type\": " + xds.URLPrefix + string(found.Config),
		})
	}
}

// isListenerFilter reports whether a type configures a listener filter, for TCP or UDP.
func isListenerFilter(v *envoyapi.Version, config protoreflect.FullName) bool {
	_, connections := v.ExtensionOf("envoy.filters.listener", config)
	_, datagrams := v.ExtensionOf("envoy.filters.udp_listener", config)
	return connections || datagrams
}

// checkBare judges an extension without a configuration.
func checkBare(p *validate.Pass, s extensionPoint, e extension, category string) {
	holder := s.field.Message().FullName()
	if s.Bare || holder == "envoy.config.core.v3.TypedExtensionConfig" || holder == "xds.core.v3.TypedExtensionConfig" {
		return // the extension needs no configuration, or field-constraint reports it
	}
	path := e.path()
	if p.Resource.Lost.Echoes(path) {
		return // the loader has reported a configuration that it could not read
	}
	if e.name != "" {
		path = path.Field("name")
	}
	p.Report(validate.Finding{
		Path:    path,
		Message: fmt.Sprintf("%s %q has no %s", kind(category), e.name, lastStep(s, e)),
		Help:    instead(p.Envoy, e, category, ""),
	})
}

// lastStep returns the name of the field for the configuration.
func lastStep(s extensionPoint, e extension) string {
	if e.inner != "" {
		return string(e.inner)
	}
	return string(s.field.Name())
}

// checkNamed judges an extension at an extension point where Envoy finds extensions by name. config is the type of
// the configuration.
func checkNamed(p *validate.Pass, s extensionPoint, e extension, category string, config protoreflect.FullName) {
	known, ok := p.Envoy.ExtensionNamed(category, e.name)
	switch {
	case !ok:
		path := e.path().Field("name")
		if s.Field.Name() == "config" {
			path = xds.Path(strings.TrimSuffix(string(e.path()), ".config")).Field("name")
		}
		var names []string
		for _, other := range p.Envoy.Extensions(category) {
			names = append(names, other.Name)
		}
		p.Report(validate.Finding{
			Path:    path,
			Message: fmt.Sprintf("unknown extension %q: Envoy finds it by its name here", e.name),
			Help:    "Envoy " + p.Envoy.Name + " has " + facts.Quoted(names),
		})
	case known.Config != "" && known.Config != config && len(e.config.GetValue()) > 0 && !isStruct(e):
		p.Report(validate.Finding{
			Path:    e.at(),
			Message: fmt.Sprintf("%s is not the configuration of %q", config, e.name),
			Help:    "write \"@type\": " + xds.URLPrefix + string(known.Config),
		})
	}
}

// isStruct reports whether the configuration is a TypedStruct. Envoy reads the fields of a TypedStruct as the
// message that the extension point expects.
func isStruct(e extension) bool {
	return xds.PayloadType(e.config) != xds.NameInURL(e.config.GetTypeUrl())
}

// instead returns the help for an extension that does not fit its extension point.
func instead(v *envoyapi.Version, e extension, category string, config protoreflect.FullName) string {
	if found, ok := v.ExtensionNamed(category, e.name); ok && found.Config != "" && found.Config != config {
		return "write \"@type\": " + xds.URLPrefix + string(found.Config)
	}
	if name, since, lacks := v.LacksExtension(category, config); lacks {
		return fmt.Sprintf("%s is unknown to Envoy %s: it came with %s", name, v.Before(since), since)
	}
	if categories := v.Categories(config); len(categories) > 0 {
		var nouns []string
		for _, other := range categories {
			nouns = append(nouns, kind(other))
		}
		return "this type configures " + strings.Join(nouns, ", ")
	}
	return "Envoy finds an extension by the type of its configuration, not by its name"
}
