package part_test

import (
	"fmt"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"xdspub/diag"
	"xdspub/watch/part"
	"xdspub/xds"
)

// A change of a live endpoint assignment goes on, and a new name waits.
func Example() {
	assignment := func(name string, overprovisioning *endpointv3.ClusterLoadAssignment_Policy) *xds.Resource {
		return xds.ResourceOf(xds.Key{Type: xds.Endpoints, Name: name}, &endpointv3.ClusterLoadAssignment{ClusterName: name, Policy: overprovisioning})
	}
	live := xds.NewSnapshot([]*xds.Resource{assignment("web", nil), assignment("api", nil)})
	policy := &endpointv3.ClusterLoadAssignment_Policy{WeightedPriorityHealth: true}
	read := xds.NewSnapshot([]*xds.Resource{assignment("web", policy), assignment("api", policy), assignment("new", policy)})
	faults := part.FaultsOf(diag.List{{Resource: diag.Resource{Type: xds.Endpoints.URL(), Name: "api"}, Message: "invalid"}}, diag.Error)

	for _, r := range part.Admit(live, read, part.TypesOf([]string{"endpoints"}), faults).Added {
		fmt.Println(r.Name)
	}
	// Output: web
}
