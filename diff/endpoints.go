package diff

import (
	"fmt"
	"net"
	"slices"
	"strconv"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"xdspub/xds"
)

// address returns an address in words.
func address(a *corev3.Address) string {
	switch {
	case a.GetPipe() != nil:
		return "unix:" + a.GetPipe().GetPath()
	case a.GetEnvoyInternalAddress() != nil:
		return "internal:" + a.GetEnvoyInternalAddress().GetServerListenerName()
	case a.GetSocketAddress() == nil:
		return "no address"
	}
	s := a.GetSocketAddress()
	port := strconv.Itoa(int(s.GetPortValue()))
	if s.GetNamedPort() != "" {
		port = s.GetNamedPort()
	}
	text := net.JoinHostPort(s.GetAddress(), port)
	if s.GetProtocol() == corev3.SocketAddress_UDP {
		text = "udp:" + text
	}
	return text
}

// AddressOf returns the address of an endpoint in words; empty for an endpoint that only has a name.
func AddressOf(e *endpointv3.LbEndpoint) string {
	if e.GetEndpoint().GetAddress() == nil {
		return e.GetEndpointName()
	}
	return address(e.GetEndpoint().GetAddress())
}

// share is an endpoint's share of the weight of its priority.
type share struct {
	address  string
	priority uint32
	part     float64 // between 0 and 1; 0 if the endpoint gets no requests
}

func (s share) String() string {
	text := strconv.FormatFloat(100*s.part, 'f', 1, 64) + "%"
	if s.priority > 0 {
		text += fmt.Sprintf(" of priority %d", s.priority)
	}
	return text
}

// sharesOf returns the shares of all endpoints of an assignment. c is the cluster; nil if it is unknown.
func sharesOf(a *endpointv3.ClusterLoadAssignment, c *clusterv3.Cluster) []share {
	byLocality := c.GetCommonLbConfig().GetLocalityWeightedLbConfig() != nil
	var list []share
	total := make(map[uint32]float64) // by priority
	for _, l := range a.GetEndpoints() {
		first, sum := len(list), 0.0
		for _, e := range l.GetLbEndpoints() {
			w := weight(e)
			sum += w
			list = append(list, share{AddressOf(e), l.GetPriority(), w})
		}
		if byLocality && sum > 0 {
			for i := first; i < len(list); i++ {
				list[i].part *= float64(l.GetLoadBalancingWeight().GetValue()) / sum
			}
			sum = float64(l.GetLoadBalancingWeight().GetValue())
		}
		total[l.GetPriority()] += sum
	}
	for i, s := range list {
		if of := total[s.priority]; of > 0 {
			list[i].part /= of
		}
	}
	return list
}

// weight returns the weight of an endpoint; 0 if its health status keeps requests away.
func weight(e *endpointv3.LbEndpoint) float64 {
	switch e.GetHealthStatus() {
	case corev3.HealthStatus_UNHEALTHY, corev3.HealthStatus_DRAINING, corev3.HealthStatus_TIMEOUT:
		return 0
	}
	return float64(max(1, e.GetLoadBalancingWeight().GetValue()))
}

// endpoints adds the effects of a changed endpoint assignment. The endpoints of a new cluster come with the cluster,
// and those of a removed cluster go with it.
func (l *effectList) endpoints(s *sides, e xds.Edited) {
	name := e.Key().Name
	was, is := s.clusterOf(s.was, name), s.clusterOf(s.is, name)
	switch {
	case e.Is == nil && is != nil:
		l.add(e.Key(), Effect{Kind: Applied}, "is removed; Envoy keeps its endpoints until it restarts")
	case e.Is == nil || e.Was == nil && was == nil:
		l.applied(e)
	case e.Was == nil:
		l.assignment(e.Key(), &endpointv3.ClusterLoadAssignment{}, assignmentOf(e.Is), nil, is)
	default:
		l.assignment(e.Key(), assignmentOf(e.Was), assignmentOf(e.Is), was, is)
	}
}

// clusterOf returns the first cluster of a Snapshot that gets an endpoint assignment; nil for none.
func (s *sides) clusterOf(in *xds.Snapshot, assignment string) *clusterv3.Cluster {
	asks := func(r *xds.Resource) bool {
		return r.AsksFor(xds.Endpoints) && slices.ContainsFunc(r.Facts().Subscriptions, func(sub xds.Subscription) bool {
			return sub.Target == xds.Endpoints && sub.Name == assignment
		})
	}
	r := in.Lookup(xds.Cluster, assignment)
	if r == nil || !asks(r) {
		if s.byAssignment[in] == nil {
			s.index(in)
		}
		r = s.byAssignment[in][assignment]
	}
	if r == nil {
		return nil
	}
	return r.Message().(*clusterv3.Cluster)
}

// index finds the clusters of a Snapshot that get an endpoint assignment under another name than their own.
func (s *sides) index(in *xds.Snapshot) {
	by := make(map[string]*xds.Resource)
	for _, r := range in.Of(xds.Cluster) {
		if !r.AsksFor(xds.Endpoints) {
			continue
		}
		for _, sub := range r.Facts().Subscriptions {
			if sub.Target == xds.Endpoints && by[sub.Name] == nil {
				by[sub.Name] = r
			}
		}
	}
	s.byAssignment[in] = by
}

// inlined adds the endpoints that come and go with a changed cluster.
func (l *effectList) inlined(e xds.Edited) {
	was, is := e.Was.Message().(*clusterv3.Cluster), e.Is.Message().(*clusterv3.Cluster)
	if was.GetLoadAssignment() != nil && is.GetLoadAssignment() != nil {
		l.assignment(e.Key(), was.GetLoadAssignment(), is.GetLoadAssignment(), was, is)
	}
}

func assignmentOf(r *xds.Resource) *endpointv3.ClusterLoadAssignment {
	return r.Message().(*endpointv3.ClusterLoadAssignment)
}

// assignment adds the endpoints that come, go, or get another share.
func (l *effectList) assignment(k xds.Key, was, is *endpointv3.ClusterLoadAssignment, cWas, cIs *clusterv3.Cluster) {
	before, after := byAddress(sharesOf(was, cWas)), byAddress(sharesOf(is, cIs))
	moved := false
	for _, at := range keys(before, after) {
		a, b := before[at], after[at]
		switch {
		case len(b) == 0:
			l.add(k, Effect{Kind: EndpointRemoved, Part: at, Was: total(a)}, "loses endpoint %s, which had %s of the weight", at, total(a))
		case len(a) == 0:
			l.add(k, Effect{Kind: EndpointAdded, Part: at, Is: total(b)}, "gets endpoint %s, with %s of the weight", at, total(b))
		case total(a) != total(b):
			l.add(k, Effect{Kind: EndpointWeight, Part: at, Was: total(a), Is: total(b)},
				"gives endpoint %s %s of the weight instead of %s", at, total(b), total(a))
		default:
			continue
		}
		moved = true
	}
	if !moved && k.Type == xds.Endpoints {
		l.add(k, Effect{Kind: Applied}, "changes; its endpoints and their weights stay")
	}
}

// byAddress returns shares by address. Localities can share an address.
func byAddress(list []share) map[string][]share {
	by := make(map[string][]share)
	for _, s := range list {
		by[s.address] = append(by[s.address], s)
	}
	return by
}

// total returns the shares of one address in words.
func total(list []share) string {
	slices.SortFunc(list, func(a, b share) int { return int(a.priority) - int(b.priority) })
	text := ""
	for i := 0; i < len(list); {
		sum := list[i]
		for i++; i < len(list) && list[i].priority == sum.priority; i++ {
			sum.part += list[i].part
		}
		if text != "" {
			text += " and "
		}
		text += sum.String()
	}
	return text
}

// localityEndpoint adds the effect of an endpoint that comes by LEDS.
func (l *effectList) localityEndpoint(e xds.Edited) {
	at := func(r *xds.Resource) string { return AddressOf(r.Message().(*endpointv3.LbEndpoint)) }
	switch {
	case e.Was == nil:
		l.add(e.Key(), Effect{Kind: EndpointAdded, Part: at(e.Is)}, "is new: %s", at(e.Is))
	case e.Is == nil:
		l.add(e.Key(), Effect{Kind: EndpointRemoved, Part: at(e.Was)}, "goes: %s", at(e.Was))
	default:
		l.add(e.Key(), Effect{Kind: EndpointWeight, Part: at(e.Is)}, "changes: %s", at(e.Is))
	}
}
