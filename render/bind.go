package render

import (
	"path"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"xdspub/xds"
)

// binder turns references "to this snapshot" into paths, and folds what Envoy
// does not take from files into what refers to it.
type binder struct {
	snapshot *xds.Snapshot
	target   Target
	// foldScopes tells that scopes get their route configurations from this
	// snapshot: some listener says so, or none says otherwise. Where no listener
	// asks for scopes, one that was dropped may still drain, and read them.
	foldScopes bool
	// scopesAsked tells that some listener subscribes to the SRDS file.
	scopesAsked bool
	// inlined are the endpoint assignments that moved into clusters.
	inlined map[string]bool
	// hosts are the virtual hosts of VHDS by their route configuration, in order.
	hosts map[string][]*routev3.VirtualHost
}

func newBinder(s *xds.Snapshot, t Target) *binder {
	b := &binder{snapshot: s, target: t, inlined: make(map[string]bool), hosts: make(map[string][]*routev3.VirtualHost)}
	for _, r := range s.Of(xds.VirtualHost) {
		routes := xds.RoutesOfHost(r.Name)
		b.hosts[routes] = append(b.hosts[routes], r.Message.(*routev3.VirtualHost))
	}
	var folding, otherwise bool
	for _, r := range s.Of(xds.Listener) {
		xds.Walk(r.Message, func(n *xds.Node) {
			sub, ok := n.Subscription()
			if !ok {
				return
			}
			serves := s.Serves(sub)
			switch n.Message.(type) {
			case *hcmv3.ScopedRoutes:
				folding, otherwise = folding || serves, otherwise || !serves
			case *hcmv3.ScopedRds:
				b.scopesAsked = b.scopesAsked || serves
			}
		})
	}
	b.foldScopes = folding || !otherwise
	if t.InlineEndpoints {
		for _, r := range s.Of(xds.Cluster) {
			sub, ok := (&xds.Node{Message: r.Message}).Subscription()
			if ok && s.Serves(sub) && s.Lookup(xds.Endpoints, sub.Name) != nil {
				b.inlined[sub.Name] = true
			}
		}
	}
	return b
}

// encode binds a resource and writes it.
func (b *binder) encode(r *xds.Resource) (*encoded, error) {
	bound := b.bind(r)
	e, err := encode(b.target.Format, r, bound.message)
	if e != nil {
		e.from, e.folded = bound.from, bound.folded
	}
	return e, err
}

// bound is a resource's message as Envoy is to see it, and what it was made of.
type bound struct {
	message proto.Message
	from    map[xds.Key]*xds.Resource
	folded  bool
}

// bind binds one resource. The message is the resource's own where nothing has
// to change.
func (b *binder) bind(r *xds.Resource) bound {
	out := bound{message: r.Message, folded: r.Type == xds.ScopedRoutes}
	needed := out.folded && b.foldScopes
	xds.Walk(r.Message, func(n *xds.Node) {
		sub, ok := n.Subscription()
		if !ok {
			return
		}
		needed = needed || b.snapshot.Serves(sub)
		out.folded = out.folded || sub.Target == xds.VirtualHost || sub.Target == xds.RouteConfiguration && (sub.Name == "" || b.foldsHosts(sub))
		if out.from == nil {
			out.from = make(map[xds.Key]*xds.Resource)
		}
		out.from[xds.Key{Type: sub.Target, Name: sub.Name}] = b.snapshot.Lookup(sub.Target, sub.Name)
	})
	if needed {
		out.message = proto.Clone(r.Message)
		xds.Edit(out.message, b.edit)
	}
	return out
}

// edit binds one message and tells whether it changed.
func (b *binder) edit(n *xds.Node) bool {
	switch m := n.Message.(type) {
	case *routev3.RouteConfiguration:
		return b.foldHosts(m)
	case *routev3.ScopedRouteConfiguration:
		return b.foldScopes && b.foldRoutes(m)
	case *hcmv3.HttpConnectionManager:
		return b.target.InlineRoutes && b.inlineRoutes(m)
	}
	sub, ok := n.Subscription()
	if !ok || !b.snapshot.Serves(sub) {
		return false
	}
	switch m := n.Message.(type) {
	case *clusterv3.Cluster:
		if b.inlined[sub.Name] {
			assignment := b.snapshot.Lookup(xds.Endpoints, sub.Name)
			m.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
			m.EdsClusterConfig = nil
			m.LoadAssignment = proto.CloneOf(assignment.Message.(*endpointv3.ClusterLoadAssignment))
			return true
		}
	case *hcmv3.ScopedRoutes:
		sub.Set(nil) // its scopes carry their routes inline
		return true
	}
	sub.Set(b.source(sub))
	return true
}

// source is the config source of a subscription, as a path. What else the author
// set on it stays.
func (b *binder) source(sub xds.Subscription) *corev3.ConfigSource {
	source := &corev3.ConfigSource{}
	if sub.Source != nil {
		source = proto.CloneOf(sub.Source)
	}
	file := path.Join(b.target.EnvoyPath, b.target.Format.Path(sub.Target, sub.Name))
	source.ResourceApiVersion = corev3.ApiVersion_V3
	source.ConfigSourceSpecifier = &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{
		Path:             file,
		WatchedDirectory: &corev3.WatchedDirectory{Path: path.Dir(file)},
	}}
	return source
}

// foldHosts puts the virtual hosts of VHDS, named "<route configuration>/<host>",
// into their route configuration: Envoy takes VHDS only over gRPC. Clusters stay
// unvalidated, as they are for VHDS; folding alone would turn that on for inline
// routes.
func (b *binder) foldHosts(m *routev3.RouteConfiguration) bool {
	if !xds.FromSnapshot(m.GetVhds().GetConfigSource()) {
		return false
	}
	m.Vhds = nil
	for _, host := range b.hosts[m.GetName()] {
		m.VirtualHosts = append(m.VirtualHosts, proto.CloneOf(host))
	}
	leaveClusters(m)
	return true
}

// foldRoutes puts a scope's route configuration into the scope: all scopes of
// one listener share one config source, and as a file that holds just one route
// configuration.
func (b *binder) foldRoutes(m *routev3.ScopedRouteConfiguration) bool {
	routes := b.routes(m.GetRouteConfigurationName())
	if routes == nil {
		return false
	}
	m.RouteConfiguration, m.RouteConfigurationName = routes, ""
	return true
}

// inlineRoutes puts the route configuration that a connection manager asks this
// snapshot for into it.
func (b *binder) inlineRoutes(m *hcmv3.HttpConnectionManager) bool {
	if !xds.FromSnapshot(m.GetRds().GetConfigSource()) {
		return false
	}
	routes := b.routes(m.GetRds().GetRouteConfigName())
	if routes == nil || routes.GetVhds() != nil { // Envoy has no VHDS for routes in a listener
		return false
	}
	m.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: routes}
	return true
}

// routes is a route configuration as it is folded into another resource, or nil
// where there is none.
func (b *binder) routes(name string) *routev3.RouteConfiguration {
	r := b.snapshot.Lookup(xds.RouteConfiguration, name)
	if r == nil {
		return nil
	}
	m := proto.CloneOf(r.Message.(*routev3.RouteConfiguration))
	b.foldHosts(m)
	leaveClusters(m)
	return m
}

// foldsHosts tells whether what a subscription asks for is folded into the one
// who asks, and has virtual hosts folded into it in turn.
func (b *binder) foldsHosts(sub xds.Subscription) bool {
	r := b.snapshot.Lookup(xds.RouteConfiguration, sub.Name)
	return b.target.InlineRoutes && r != nil && xds.FromSnapshot(r.Message.(*routev3.RouteConfiguration).GetVhds().GetConfigSource())
}

func leaveClusters(m *routev3.RouteConfiguration) {
	if m.ValidateClusters == nil {
		m.ValidateClusters = wrapperspb.Bool(false)
	}
}
