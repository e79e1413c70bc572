package validate

import (
	"fmt"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"xdspub/xds"
)

var unresolvedReference = &Rule{
	Code:  "unresolved-reference",
	Whole: true,
	Doc: `A name stands for something that does not exist.

What a name refers to must be in the source tree, or in the Envoy's bootstrap
where that is known. Where it is missing, Envoy refuses the resource that names it
("route: unknown cluster", "Unknown static secret", "paths must refer to an
existing path in the system"), or accepts it and fails the requests: a route by RDS
to an unknown cluster answers 503, a tcp_proxy resets the connection, ext_authz
denies. That is an error. Where Envoy accepts it and requests go on without (a
tracer, an access log, a mirror), or only those fail that a matcher of a virtual
host or a key of Redis leads there, it is a warning.

Some references can't be met by a cluster of the tree: the cluster of a gRPC or
REST config source for RDS, EDS, SRDS or ECDS, and of a fluentd access log, must
be a static one of the bootstrap.`,
	Node: func(p *Pass, n *xds.Node) {
		for _, use := range n.Uses() {
			switch use.Kind {
			case xds.ClusterName, xds.ListenerName:
				checkName(p, n, use)
			case xds.Local:
				checkLocal(p, n, use)
			}
		}
	},
	Snapshot: checkSubscriptions,
}

// checkName checks a name that stands by itself, for a cluster or a listener.
func checkName(p *Pass, n *xds.Node, use xds.Use) {
	f := Finding{Path: use.Path}
	switch load := loadAt(n, use); load {
	case xds.Static:
		if p.Known.Has(use.Target, use.Name) {
			return
		}
		f.Message = fmt.Sprintf("%s %q is no static one of the bootstrap: Envoy refuses the %s", use.Target.Noun, use.Name, p.Resource.Type.Noun)
		f.Help = "define it in the bootstrap, and say which bootstrap Envoy has"
		if other := p.Snapshot.Lookup(use.Target, use.Name); other != nil {
			f.Related = related(other, "name", "this one comes too late: Envoy looks for it in the bootstrap only")
		}
	case xds.Refused, xds.BreaksTraffic:
		if p.Exists(use.Target, use.Name) {
			return
		}
		f.Help = suggest(p, use.Target, use.Name)
		switch {
		case load == xds.Refused:
			f.Message = fmt.Sprintf("unknown %s %q: Envoy refuses the %s", use.Target.Noun, use.Name, p.Resource.Type.Noun)
		case besideRequests(n):
			f.Message = fmt.Sprintf("unknown %s %q: Envoy accepts it, and goes on without", use.Target.Noun, use.Name)
			f.Warning = true
		default:
			f.Message = fmt.Sprintf("unknown %s %q: Envoy accepts it, and requests fail", use.Target.Noun, use.Name)
			f.Warning = pickedByRequest(n)
		}
	default: // chosen at run time, or never looked up
		return
	}
	p.Report(f)
}

// suggest says what would be right instead of a missing name.
func suggest(p *Pass, t *xds.Type, name string) string {
	if near := p.names[t]().Nearest(name); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return fmt.Sprintf("define the %s, or correct the name", t.Noun)
}

// loadAt is what Envoy does about a missing target just here, where the
// catalogue says that it depends.
func loadAt(n *xds.Node, use xds.Use) xds.Load {
	switch use.Field {
	case "envoy.config.core.v3.GrpcService.EnvoyGrpc.cluster_name", "envoy.config.core.v3.ApiConfigSource.cluster_names":
		return loadInConfigSource(n, use.Load)
	case "envoy.config.core.v3.HttpUri.cluster":
		if inside(n, "envoy.config.trace.v3.ZipkinConfig") {
			return xds.Refused
		}
	}
	if use.Load == xds.Conditional {
		if validatesClusters(n) {
			return xds.Refused
		}
		return xds.BreaksTraffic
	}
	return use.Load
}

// loadInConfigSource: Envoy sets up most subscriptions before any cluster comes
// by CDS, and refuses one that needs such a cluster; secrets, virtual hosts and
// load reports it starts later.
func loadInConfigSource(n *xds.Node, otherwise xds.Load) xds.Load {
	source := enclosing(n, "envoy.config.core.v3.ConfigSource")
	if source == nil {
		return otherwise
	}
	switch source.Field() {
	case "envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig.sds_config", "envoy.config.route.v3.Vhds.config_source",
		"envoy.config.cluster.v3.Cluster.lrs_server":
		return xds.BreaksTraffic
	}
	return xds.Static
}

// validatesClusters tells whether Envoy looks the clusters of a route up when it
// loads the route: in an inline route configuration unless told not to, in RDS
// only if told to, and never in a matcher.
func validatesClusters(n *xds.Node) bool {
	routes, at := xds.Enclosing[*routev3.RouteConfiguration](n)
	switch {
	case inside(n, "envoy.config.route.v3.VirtualHost.matcher"):
		return false
	case routes == nil:
		// Of the other protocols, Thrift alone looks its clusters up; a virtual host
		// without a route configuration comes by VHDS.
		return inside(n, "envoy.extensions.filters.network.thrift_proxy.v3.ThriftProxy")
	case routes.GetValidateClusters() != nil:
		return routes.GetValidateClusters().GetValue()
	default:
		return at.Parent != nil
	}
}

// pickedByRequest tells whether a name counts only for the requests that a matcher
// or a key of their own leads to it: Envoy never looks it up before.
func pickedByRequest(n *xds.Node) bool {
	return inside(n,
		"envoy.config.route.v3.VirtualHost.matcher",
		"envoy.extensions.filters.network.redis_proxy.v3.RedisProxy.PrefixRoutes",
	)
}

// besideRequests tells whether requests go on without what a name stands for, or
// were not seen to fail. The messages are those around such names.
func besideRequests(n *xds.Node) bool {
	return inside(n,
		"envoy.config.accesslog.v3.AccessLog",
		"envoy.config.cluster.v3.Cluster.lrs_server",
		"envoy.config.core.v3.EventServiceConfig",
		"envoy.config.ratelimit.v3.RateLimitServiceConfig",
		"envoy.config.route.v3.RouteAction.RequestMirrorPolicy",
		"envoy.data.dns.v3.DnsTable",
		"envoy.extensions.filters.http.ext_authz.v3.CheckSettings",
		"envoy.extensions.filters.http.oauth2.v3.OAuth2Config",
		"envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaFilterConfig",
		"envoy.extensions.filters.network.dubbo_proxy.v3.RouteAction",
		"envoy.extensions.filters.network.ext_proc.v3.NetworkExternalProcessor",
		"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.Tracing",
		"envoy.extensions.filters.network.redis_proxy.v3.RedisProxy.PrefixRoutes.Route.RequestMirrorPolicy",
		"envoy.extensions.wasm.v3.VmConfig",
	)
}
