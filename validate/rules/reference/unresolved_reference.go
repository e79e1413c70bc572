package reference

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var unresolvedReference = &validate.Rule{
	Code:  "unresolved-reference",
	Whole: true,
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
Envoy does not check this.`,
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
