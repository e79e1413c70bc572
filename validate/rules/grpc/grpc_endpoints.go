package grpc

import (
	"fmt"
	"math"
	"net"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var grpcEndpoints = &validate.Rule{
	Code: "grpc-endpoints",
	Doc: `gRPC rejects or ignores endpoints of an assignment.

Each entry of endpoints needs a locality, which may be empty ({}), and a load_balancing_weight
of 1 or more: gRPC ignores an entry without a weight, so that its endpoints get no calls, an
error where no other entry has endpoints, else a warning. With Envoy both may be left out.

gRPC rejects an assignment in which two entries of one priority have the same locality, in which
a priority is left out (0 and 2 without 1), in which two endpoints have the same address, an
endpoint has the weight 0, or weights add up to more than 4294967295. An endpoint needs a
socket_address: gRPC reads any other as an empty one (gRFC A27, A37).`,
	Checks: []diag.Check{
		{Name: "address", Summary: "An endpoint lacks a socket_address, or repeats one."},
		{Name: "locality", Summary: "An entry lacks a locality, or repeats one."},
		{Name: "locality-weight", Summary: "gRPC ignores endpoints whose locality has no weight."},
		{Name: "priority", Summary: "A priority is left out."},
		{Name: "weights", Summary: "A weight is 0, or the weights add up to too much."},
	},
	Messages: []protoreflect.FullName{"envoy.config.endpoint.v3.ClusterLoadAssignment"},
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		if n.Parent != nil {
			return // the load_assignment of a cluster: grpc-cluster reports it
		}
		checkAssignment(p, n.Message.(*endpointv3.ClusterLoadAssignment))
	},
}

func checkAssignment(p *validate.LookupPass, a *endpointv3.ClusterLoadAssignment) {
	c := assignmentCheck{
		LookupPass: p, addresses: make(map[string]bool),
		localities: make(map[uint32]map[string]bool), sums: make(map[uint32]uint64),
	}
	weighted := 0
	for _, l := range a.GetEndpoints() {
		if l.GetLoadBalancingWeight().GetValue() > 0 && len(c.of("", l)) > 0 {
			weighted++
		}
	}
	for i, l := range a.GetEndpoints() {
		path := xds.Path("endpoints").Index(i)
		switch {
		case l.GetLocality() == nil:
			c.reject("locality", path, "an entry of endpoints has no locality", "write locality: {}, or that of the endpoints")
		case l.GetLoadBalancingWeight().GetValue() > 0:
			c.locality(path, l)
		case len(c.of(path, l)) > 0:
			p.Report(validate.Finding{
				Check: "locality-weight",
				Path:  path, Warning: weighted > 0,
				Message: "gRPC ignores these endpoints, because their locality has no load_balancing_weight",
				Help:    "write load_balancing_weight: 1, or the weight of the locality",
			})
		}
	}
	c.priorities()
}

// assignmentCheck collects the addresses, localities and weights of an assignment during its check.
type assignmentCheck struct {
	*validate.LookupPass
	addresses  map[string]bool
	localities map[uint32]map[string]bool // the names of localities, by priority
	sums       map[uint32]uint64          // the sums of weights, by priority
}

func (c *assignmentCheck) reject(check validate.CheckName, path xds.Path, what, help string) {
	c.rejectAt(check, facts.Place{Resource: c.Resource, Path: path}, what, help)
}

func (c *assignmentCheck) rejectAt(check validate.CheckName, at facts.Place, what, help string) {
	c.Report(validate.Finding{Check: check, Resource: at.Resource, Path: at.Path, Message: "gRPC rejects the endpoints: " + what, Help: help})
}

func (c *assignmentCheck) locality(path xds.Path, l *endpointv3.LocalityLbEndpoints) {
	priority, is := l.GetPriority(), l.GetLocality()
	if c.localities[priority] == nil {
		c.localities[priority] = make(map[string]bool)
	}
	key := fmt.Sprintf("%q %q %q", is.GetRegion(), is.GetZone(), is.GetSubZone())
	if c.localities[priority][key] {
		c.reject("locality", path.Field("locality"), fmt.Sprintf("two entries of priority %d have the "+
			"same locality", priority), "put their endpoints into one entry")
	}
	c.localities[priority][key] = true
	c.add(path, priority, l.GetLoadBalancingWeight().GetValue())
	c.endpoints(path, l)
}

// of returns the endpoints of a locality. path is the path of the locality.
func (c *assignmentCheck) of(path xds.Path, l *endpointv3.LocalityLbEndpoints) []facts.Endpoint {
	return facts.EndpointsOf(c.Snapshot, facts.Place{Resource: c.Resource, Path: path}, l)
}

func (c *assignmentCheck) add(path xds.Path, priority, weight uint32) {
	was := c.sums[priority]
	c.sums[priority] += uint64(weight)
	if was <= math.MaxUint32 && c.sums[priority] > math.MaxUint32 {
		c.reject("weights", path.Field("load_balancing_weight"), fmt.Sprintf("the weights of the localities of priority %d add up "+
			"to more than %d", priority, uint32(math.MaxUint32)), "write smaller weights; only their proportions count")
	}
}

func (c *assignmentCheck) endpoints(path xds.Path, l *endpointv3.LocalityLbEndpoints) {
	field := "lb_endpoints"
	if l.GetLedsClusterLocalityConfig() != nil {
		field = "leds_cluster_locality_config"
	}
	var sum uint64
	for _, e := range c.of(path, l) {
		weight := uint64(1)
		if w := e.GetLoadBalancingWeight(); w != nil {
			weight = uint64(w.GetValue())
		}
		if weight == 0 {
			c.rejectAt("weights", e.At("load_balancing_weight"), "the weight of an endpoint is 0", "write 1 or more, or remove the endpoint")
		}
		if sum <= math.MaxUint32 && sum+weight > math.MaxUint32 {
			c.reject("weights", path.Field(field), fmt.Sprintf("the weights of the endpoints of a locality add up to "+
				"more than %d", uint32(math.MaxUint32)), "write smaller weights; only their proportions count")
		}
		sum += weight
		c.address(e.At("endpoint.address"), e.GetEndpoint().GetAddress())
		for j, more := range e.GetEndpoint().GetAdditionalAddresses() {
			c.address(e.At(xds.Path("endpoint.additional_addresses").Index(j).Field("address")), more.GetAddress())
		}
	}
}

func (c *assignmentCheck) address(at facts.Place, a *corev3.Address) {
	s := a.GetSocketAddress()
	if s == nil {
		c.Report(validate.Finding{Check: "address", Resource: at.Resource, Path: at.Path, Message: "gRPC can't connect to the " +
			"endpoint: it has no socket_address", Help: "write a socket_address"})
		return
	}
	text := net.JoinHostPort(s.GetAddress(), strconv.Itoa(int(s.GetPortValue())))
	if c.addresses[text] {
		c.rejectAt("address", at, fmt.Sprintf("two endpoints have the address %s", text), "remove one of them")
	}
	c.addresses[text] = true
}

// priorities reports a missing priority: gRPC needs all priorities from 0 to the highest.
func (c *assignmentCheck) priorities() {
	for i := range uint32(len(c.localities)) {
		if c.localities[i] == nil {
			c.reject("priority", "endpoints", fmt.Sprintf("no entry with a load_balancing_weight has the priority %d, and some "+
				"have a higher one", i), "number the priorities from 0, without a gap")
			return
		}
	}
}
