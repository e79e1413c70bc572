package importer

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"xdspub/diag"
	"xdspub/xds"
)

// measure records the endpoint assignments of a cluster if Envoy measures the health of the endpoints.
func (r *reading) measure(of *xds.Resource) {
	c, ok := of.Message().(*clusterv3.Cluster)
	if !ok || len(c.GetHealthChecks()) == 0 && c.GetOutlierDetection() == nil {
		return
	}
	for _, s := range of.Facts().Subscriptions {
		if s.Target == xds.Endpoints {
			r.measured[s.Name] = true
		}
	}
}

// envoyOverprovisioning is the default that Envoy writes into a dump.
const envoyOverprovisioning = 140

// asWritten returns an endpoint assignment as a user would write it: without defaults, and without the health that
// Envoy has measured.
func (r *reading) asWritten(of *xds.Resource) *xds.Resource {
	m, ok := proto.Clone(of.Message()).(*endpointv3.ClusterLoadAssignment)
	if !ok {
		return of
	}
	if m.GetPolicy().GetOverprovisioningFactor().GetValue() == envoyOverprovisioning {
		m.Policy.OverprovisioningFactor = nil
	}
	if proto.Size(m.GetPolicy()) == 0 {
		m.Policy = nil
	}
	measured := 0
	for _, l := range m.GetEndpoints() {
		if proto.Size(l.GetLocality()) == 0 {
			l.Locality = nil
		}
		if l.GetLoadBalancingWeight().GetValue() == 0 { // Envoy accepts no weight 0: the weight was not set
			l.LoadBalancingWeight = nil
		}
		for _, e := range l.GetLbEndpoints() {
			if plain(e, r.measured[m.GetClusterName()]) {
				measured++
			}
		}
	}
	if measured > 0 {
		r.warn(of, "endpoints", fmt.Sprintf("%s of %s were not healthy when the dump was made, and are imported without that: "+
			"Envoy checks their health", diag.Count(measured, "endpoint"), of.Key), "")
	}
	return of.With(m)
}

// plain removes values that Envoy adds to an endpoint. unhealthy is true if plain removed a bad health. measured
// means that Envoy measures the health of the endpoint.
func plain(e *endpointv3.LbEndpoint, measured bool) (unhealthy bool) {
	switch e.GetHealthStatus() {
	case corev3.HealthStatus_HEALTHY:
		e.HealthStatus = corev3.HealthStatus_UNKNOWN
	case corev3.HealthStatus_UNHEALTHY, corev3.HealthStatus_DEGRADED:
		if measured {
			e.HealthStatus, unhealthy = corev3.HealthStatus_UNKNOWN, true
		}
	}
	if e.GetLoadBalancingWeight().GetValue() == 1 {
		e.LoadBalancingWeight = nil
	}
	if proto.Size(e.GetMetadata()) == 0 {
		e.Metadata = nil
	}
	if at := e.GetEndpoint(); at != nil && proto.Size(at.GetHealthCheckConfig()) == 0 {
		at.HealthCheckConfig = nil
	}
	return unhealthy
}

// kept has a message for each type of resources whose dump lacks a part, because Envoy does not keep the part.
var kept = map[*xds.Type]string{
	xds.Endpoints: "endpoints are imported without proximity, disable_active_health_check, endpoint_stale_after and " +
		"weighted_priority_health, which are not in a dump",
	xds.Secret: "secrets are imported with the content of files that they may have named: a dump has no names of files, and Envoy follows these no more",
}

// noteKept reports the parts that a dump lacks, once for each imported type.
func (r *reading) noteKept() {
	told := make(map[*xds.Type]bool)
	for _, i := range r.items {
		if message := kept[i.Type]; message != "" && i.source.text != nil && !told[i.Type] {
			told[i.Type] = true
			f := i.Diagnostic(codeChange.Name, "", message)
			f.Severity = diag.Info
			r.found.Add(f)
		}
	}
}
