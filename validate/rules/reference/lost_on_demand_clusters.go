package reference

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var lostOnDemandClusters = &validate.Rule{
	Code:     "lost-on-demand-clusters",
	Severity: diag.Warning,
	Profiles: []validate.Profile{validate.EnvoyFile},
	Doc: `Envoy loses on-demand clusters when the file of its other clusters changes.

The on_demand filter and on_demand of a TCP proxy ask a server for a cluster when a request needs
the cluster. If CDS is a file, Envoy takes the file for all clusters that it may have: with each
rename of the file, also of one with the same content, Envoy removes each on-demand cluster
(envoyproxy/envoy#42551). Envoy does not ask for a removed cluster again, because its subscription
to the cluster goes on: requests wait for timeout, and get 503, until the server sends another
version of the cluster or Envoy restarts. Get the other clusters from a server too, by delta, or
write the on-demand clusters into the file.`,
	Messages: []protoreflect.FullName{
		"envoy.extensions.filters.http.on_demand.v3.OnDemandCds",
		"envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.OnDemand",
	},
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		field, source := onDemandSource(n)
		switch {
		case !xds.FromServer(source):
		case p.Snapshot.FromBootstrap() && !p.BootstrapFacts.ClustersInFile():
		case !p.Snapshot.FromBootstrap() && (xds.FromSnapshot(source) || !p.Snapshot.Complete(xds.Cluster)): // unsupported-config-source reports ads
		default:
			p.Report(validate.Finding{
				Path: n.Path().Field(field),
				Message: "clusters come on demand, and CDS is a file: with each change of the file Envoy loses the on-demand " +
					"clusters, and requests to them get 503 until it restarts",
				Help: "write the clusters into the file, or get all clusters from a server, by DELTA_GRPC",
			})
		}
	},
}
