package reference

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/xds"
)

// readByGRPC are the fields with a name that gRPC clients resolve.
var readByGRPC = []protoreflect.FullName{
	"envoy.config.route.v3.RouteAction.cluster",
	"envoy.config.route.v3.RouteAction.cluster_specifier_plugin",
	"envoy.config.route.v3.WeightedCluster.ClusterWeight.name",
	"envoy.extensions.clusters.aggregate.v3.ClusterConfig.clusters",
}

// Effects of a missing target on a gRPC client.
const (
	callsFail   = "calls fail"
	grpcIgnores = "gRPC does not look for it"
)

// checkNameForGRPC does what checkName does, for a Snapshot that only gRPC clients get. A gRPC client has no static
// clusters.
func checkNameForGRPC(p *validate.LookupPass, n *xds.Node, use xds.Use) {
	if n.InMetadata() || p.Envoy.OnMissing(use.Field) == envoyapi.Dynamic || !p.Lacks(use.Target, use.Name) {
		return
	}
	does, warning := callsFail, false
	switch {
	case !slices.Contains(readByGRPC, use.Field):
		does, warning = grpcIgnores, true
	case othersServe(p, n):
		does, warning = "gRPC "+goesOn, true
	}
	reportUnknown(p, use, missing(use.Target.Noun), fmt.Sprintf("unknown %s %q: %s", use.Target.Noun, use.Name, does), warning)
}

// refusal returns the words for the rejection of the judged resource by Envoy or, if only gRPC clients get the
// Snapshot, by gRPC.
func refusal(p *validate.Pass) string {
	if p.GRPCAlone() {
		return "gRPC rejects the " + p.Resource.Type.Noun
	}
	return p.Resource.Refusal()
}
