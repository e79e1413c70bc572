package reference

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var unresolvedReference = &validate.Rule{
	Code: "unresolved-reference",
	Doc: `A reference names a resource that does not exist.

A referenced resource must be in the source tree, or in Envoy's bootstrap if that is known.
Without it Envoy rejects the resource with the reference ("route: unknown cluster", "Unknown
static secret", "paths must refer to an existing path in the system"), or accepts it and fails
the requests: with an unknown cluster, a route from RDS answers 503, tcp_proxy resets the
connection, ext_authz denies. Both are errors.

It is a warning if Envoy accepts the resource and requests continue (tracer, access log, mirror,
a filter that fails open, one member of an aggregate cluster), if only part of the traffic fails
(a Redis command, a route's override, tokens whose keys can't be fetched), and if the setting
has no effect, such as a configuration for an HTTP filter that does not exist.

Some references need a static cluster of the bootstrap: the cluster of a gRPC or REST config
source for RDS, EDS, SRDS or ECDS, and of a fluentd access log. With a source of type DELTA_GRPC
Envoy does not check this. Whatever Envoy looks up while it loads a static resource must be in the
bootstrap too, such as the cluster of a route in a static listener: Envoy asks CDS later. If clusters
or listeners come over the network, only names that Envoy looks up later may come from there. A cluster
that comes on demand, by the on_demand filter or on_demand of tcp_proxy, may be missing.

With --profile grpc alone, an error is what makes calls fail, and what gRPC rejects: an unknown cluster,
endpoint assignment, route configuration or cluster specifier plugin. gRPC looks for no other names.`,
	Checks: []diag.Check{
		{Name: "cluster", Summary: "A reference names a missing cluster."},
		{Name: "cluster-specifier-plugin", Summary: "A route names an unknown cluster specifier plugin."},
		{Name: "endpoint-assignment", Summary: "The endpoint assignment of a cluster does not exist."},
		{Name: "endpoint-collection", Summary: "No endpoint is in the collection of a locality."},
		{Name: "extension-config", Summary: "A reference names a missing extension config."},
		{Name: "filter-chain", Summary: "An action names an unknown filter chain of its listener."},
		{Name: "http-filter", Summary: "A route configures a filter that no listener has."},
		{Name: "internal-listener", Summary: "An endpoint names a listener that is not an internal one."},
		{Name: "jwt-provider", Summary: "A requirement names an unknown JWT provider."},
		{Name: "jwt-requirement", Summary: "A rule or a route names an unknown JWT requirement."},
		{Name: "listener", Summary: "A reference names a missing listener."},
		{Name: "lua-source-code", Summary: "A route names an unknown source code of the Lua filter."},
		{Name: "named-filter-chain", Summary: "An action names an unknown filter chain of the composite filter."},
		{Name: "protocol-options-key", Summary: "A key of typed_extension_protocol_options is unknown."},
		{Name: "resource-monitor", Summary: "A trigger names an unknown resource monitor."},
		{Name: "route", Summary: "A redirect names an unknown route."},
		{Name: "route-configuration", Summary: "A reference names a missing route configuration."},
		{Name: "scoped-route-configuration", Summary: "A listener uses scoped routes, and the tree has no scope."},
		{Name: "secret", Summary: "A reference names a missing secret."},
		{Name: "static-cluster", Summary: "The name must be that of a static cluster of the bootstrap."},
		{Name: "transport-socket", Summary: "An action names an unknown transport socket of its cluster."},
		{Name: "virtual-host", Summary: "A virtual host belongs to no route configuration that asks for it."},
	},
	Wants: func(md protoreflect.MessageDescriptor) bool {
		return xds.Refers(md.FullName()) || md.FullName() == "google.protobuf.StringValue"
	},
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		for _, use := range n.Uses() {
			switch use.Kind {
			case xds.ClusterName, xds.ListenerName:
				checkName(p, n, use)
			case xds.Local:
				if facts.IsUnread(n) {
					return
				}
				checkLocal(&p.Pass, n, use)
				checkOverride(p, n, use)
			}
		}
		checkChainAction(&p.Pass, n)
	},
	Resource: checkSubscriptions,
}
