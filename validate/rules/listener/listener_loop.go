package listener

import (
	"fmt"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var listenerLoop = &validate.Rule{
	Code: "listener-loop",
	Doc: `An internal listener sends its traffic back to itself.

An endpoint can be an internal listener (envoy_internal_address). If that listener proxies to
a cluster whose endpoint leads back to it, one connection from outside opens the next one
inside, until the circuit breaker of the cluster opens (1024 connections by default), and no
request is answered. Envoy accepts this. If only part of the traffic loops (routes, weighted
clusters, several filter chains or endpoints), it is a warning.`,
	Collect: []protoreflect.FullName{"envoy.config.core.v3.EnvoyInternalAddress"},
	Snapshot: func(p *validate.SnapshotPass) {
		if len(p.Collected) == 0 {
			return
		}
		ways := newListenerWays(&p.LookupPass)
		reported := make(map[string]bool)
		for _, r := range facts.Named(p.Snapshot.Of(xds.Listener)) {
			if ways.cycle[r.Name] == 0 || reported[r.Name] {
				continue
			}
			way := ways.back(r.Name)
			f := validate.Finding{
				Resource: way[0].Resource,
				Path:     way[0].Path,
				Message:  fmt.Sprintf("cluster %q leads back to listener %q", way[0].cluster, r.Name),
				Help:     "route to a cluster with endpoints outside of this Envoy",
				Warning:  slices.ContainsFunc(way, func(h hop) bool { return !h.all }),
			}
			for _, h := range way {
				reported[h.to] = true
				if h.Place != way[0].Place {
					f.Related = append(f.Related, facts.Related(h.Resource, h.Path, "part of the loop")...)
				}
			}
			p.Report(f)
		}
	},
}

// hop leads from a listener by a cluster to another listener. Place is the field that names the cluster.
type hop struct {
	facts.Place
	cluster string
	to      string
	// all means that each connection of the listener takes the hop.
	all bool
}

// listenerWays holds the hops from each listener. cycle is the result of facts.Cycles.
type listenerWays struct {
	from  map[string][]hop
	cycle map[string]int
}

func newListenerWays(p *validate.LookupPass) listenerWays {
	w := listenerWays{from: make(map[string][]hop)}
	var names []string
	for _, r := range facts.Named(p.Snapshot.Of(xds.Listener)) {
		names = append(names, r.Name)
		w.from[r.Name] = hopsFrom(p, r.Name)
	}
	w.cycle = facts.Cycles(names, w.to)
	return w
}

// back returns the hops from a listener in a cycle back to this listener.
func (w listenerWays) back(name string) (way []hop) {
	list := facts.CyclePath(name, w.to, w.cycle)
	for i, from := range list {
		to := list[(i+1)%len(list)]
		at := slices.IndexFunc(w.from[from], func(h hop) bool { return h.to == to })
		way = append(way, w.from[from][at])
	}
	return way
}

func (w listenerWays) to(name string) (names []string) {
	for _, h := range w.from[name] {
		names = append(names, h.to)
	}
	return names
}

func hopsFrom(p *validate.LookupPass, name string) (hops []hop) {
	r := p.Snapshot.Lookup(xds.Listener, name)
	if r == nil {
		return nil
	}
	l := r.Message().(*listenerv3.Listener)
	onlyChain := len(l.GetFilterChains()) == 1 && l.GetDefaultFilterChain() == nil
	var look func(r *xds.Resource)
	look = func(r *xds.Resource) {
		xds.Walk(r.Message(), func(n *xds.Node) {
			if rds, ok := n.Message.(*hcmv3.Rds); ok {
				if routes := p.Snapshot.Lookup(xds.RouteConfiguration, rds.GetRouteConfigName()); routes != nil {
					look(routes)
				}
			}
			for _, use := range n.Uses() {
				switch use.Field {
				case "envoy.config.route.v3.RouteAction.cluster",
					"envoy.config.route.v3.WeightedCluster.ClusterWeight.name",
					"envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.cluster",
					"envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster.ClusterWeight.name":
				default:
					continue
				}
				targets, all := internalTargets(p, use.Name)
				for _, to := range targets {
					hops = append(hops, hop{
						Place: facts.Place{Resource: r, Path: use.Path()}, cluster: use.Name, to: to,
						all: all && onlyChain && use.Field == "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.cluster",
					})
				}
			}
		})
	}
	look(r)
	return hops
}

// internalTargets returns the internal listeners among the endpoints of a cluster. all is true if each endpoint is
// an internal listener, and there is at least one.
func internalTargets(p *validate.LookupPass, cluster string) (names []string, all bool) {
	r := p.Snapshot.Lookup(xds.Cluster, cluster)
	if r == nil {
		return nil, false
	}
	c := r.Message().(*clusterv3.Cluster)
	assignment := c.GetLoadAssignment()
	if c.GetType() == clusterv3.Cluster_EDS {
		name := c.GetEdsClusterConfig().GetServiceName()
		if name == "" {
			name = c.GetName()
		}
		if eds := p.Snapshot.Lookup(xds.Endpoints, name); eds != nil {
			assignment = eds.Message().(*endpointv3.ClusterLoadAssignment)
		}
	}
	endpoints, seen := 0, make(map[string]bool)
	for _, locality := range assignment.GetEndpoints() {
		for _, e := range facts.EndpointsOf(p.Snapshot, facts.Place{}, locality) {
			endpoints++
			if name := e.GetEndpoint().GetAddress().GetEnvoyInternalAddress().GetServerListenerName(); name != "" && !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names, endpoints == 1
}
