package cluster

import (
	"fmt"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var noHealthyEndpoints = &validate.Rule{
	Code:     "no-healthy-endpoints",
	Severity: diag.Warning,
	Doc: `A cluster has no endpoint that can receive requests.

Envoy accepts a cluster without endpoints, and every request gets 503 "no healthy
upstream". The same happens if all endpoints are UNHEALTHY, DRAINING or TIMEOUT and
healthy_panic_threshold is 0; with another threshold the cluster is in panic mode and sends
requests to all of them. Envoy does not read load_balancer_endpoints.`,
	Messages: []protoreflect.FullName{"envoy.config.cluster.v3.Cluster", "envoy.config.endpoint.v3.ClusterLoadAssignment"},
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *clusterv3.Cluster:
			checkPanicOff(p, n, m)
		case *endpointv3.ClusterLoadAssignment:
			if n.Parent == nil {
				checkEmptyAssignment(p, m)
			}
		}
	},
}

// clustersOfEndpoints maps the name of an endpoint assignment to the clusters that subscribe to it.
var clustersOfEndpoints = validate.NewIndex([]*xds.Type{xds.Cluster}, func(_ *xds.Snapshot, r *xds.Resource, add func(string, *xds.Resource)) {
	for _, sub := range r.Facts().Subscriptions {
		if sub.Target == xds.Endpoints && sub.Name != "" {
			add(sub.Name, r)
		}
	}
})

// checkEmptyAssignment judges an endpoint assignment that is a resource. It reports the assignment only if a
// cluster subscribes to it.
func checkEmptyAssignment(p *validate.LookupPass, m *endpointv3.ClusterLoadAssignment) {
	if hasEndpoints(m) || p.Snapshot.Lookup(xds.Endpoints, p.Resource.Name) != p.Resource {
		return
	}
	if _, asked := clustersOfEndpoints.First(p.Snapshot, p.Resource.Name); !asked {
		return
	}
	p.Report(validate.Finding{
		Path:    "endpoints",
		Message: fmt.Sprintf("endpoint assignment %q has no endpoints: requests get 503", m.GetClusterName()),
		Help:    "list them in endpoints[].lb_endpoints",
	})
}

// hasEndpoints reports whether an assignment has endpoints, or a locality with LEDS. The rule unresolved-reference
// reports an empty collection of LEDS.
func hasEndpoints(a *endpointv3.ClusterLoadAssignment) bool {
	return slices.ContainsFunc(a.GetEndpoints(), func(l *endpointv3.LocalityLbEndpoints) bool {
		return len(l.GetLbEndpoints()) > 0 || l.GetLedsClusterLocalityConfig() != nil
	})
}

func checkPanicOff(p *validate.LookupPass, n *xds.Node, c *clusterv3.Cluster) {
	threshold := c.GetCommonLbConfig().GetHealthyPanicThreshold()
	if threshold == nil || threshold.GetValue() != 0 {
		return
	}
	r, path, assignment := assignmentOf(p, n, c)
	endpoints, all := endpointsOf(p.Snapshot, facts.Place{Resource: r, Path: path}, assignment)
	if len(endpoints) == 0 || !all {
		return
	}
	for _, e := range endpoints {
		switch e.GetHealthStatus() {
		case corev3.HealthStatus_UNHEALTHY, corev3.HealthStatus_DRAINING, corev3.HealthStatus_TIMEOUT:
		default:
			return
		}
	}
	p.Report(validate.Finding{
		Resource: r,
		Path:     path.Field("endpoints"),
		Message:  fmt.Sprintf("no endpoint of cluster %q is healthy: requests get 503", c.GetName()),
		Help:     "remove health_status from one of them, or set healthy_panic_threshold above 0",
		Related:  facts.Related(p.Resource, n.Path().Field("common_lb_config").Field("healthy_panic_threshold"), "this threshold turns panic mode off"),
	})
}
