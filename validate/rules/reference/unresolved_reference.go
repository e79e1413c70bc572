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

What a name refers to must be in the source tree, or in the Envoy's bootstrap
where that is known. Where it is missing, Envoy refuses the resource that names it
("route: unknown cluster", "Unknown static secret", "paths must refer to an
existing path in the system"), or accepts it and fails the requests: a route by RDS
to an unknown cluster answers 503, a tcp_proxy resets the connection, ext_authz
denies. That is an error.

It is a warning where Envoy accepts it and requests go on without (a tracer, an
access log, a mirror, a filter that fails open, one of the clusters of an aggregate),
where a part of the traffic fails (a command of Redis, a route's override, tokens
whose keys can't be fetched), and where the setting just never takes effect, such as
a configuration for an HTTP filter of a name that no filter has.

Some references can't be met by a cluster of the tree: the cluster of a gRPC or
REST config source for RDS, EDS, SRDS or ECDS, and of a fluentd access log, must
be a static one of the bootstrap. Of a source of type DELTA_GRPC Envoy asks nothing.`,
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
