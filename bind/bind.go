// Package bind makes of a Snapshot what a client gets by one medium. A config source
// that says "from this snapshot" (ads, self) becomes the one by which the medium
// answers, and what the medium can't carry by itself goes into the resource that asks
// for it. The rest stays as it is.
//
//	var binder bind.Binder
//	bound := binder.Bind(ctx, snapshot, medium)
//
// How resources are written is not known here, nor where to.
package bind

import (
	"context"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"xdspub/xds"
)

// Medium is a way in which resources reach a client. Values of it are compared by ==:
// equal ones bind alike.
type Medium interface {
	// Source is the config source by which the client gets what a subscription to the
	// Snapshot asks for; nil leaves the one that is there.
	Source(xds.Subscription) *corev3.ConfigSource
	// Inline is what goes into the resources that ask for it.
	Inline() Inline
}

// Inline selects the resources that Bind inlines into those that refer to them.
type Inline struct {
	// Endpoints puts endpoint assignments into their clusters.
	Endpoints bool
	// Routes puts route configurations into the connection managers that name them. They
	// stay resources as well: scopes and draining listeners may ask for them.
	Routes bool
	// ScopeRoutes puts route configurations into the scopes that name them.
	ScopeRoutes bool
	// VirtualHosts puts virtual hosts into the route configurations that ask for them.
	VirtualHosts bool
}

// Binder binds Snapshots. It keeps what it bound: a resource that nothing has changed
// for is the same one again. Not for concurrent use.
type Binder struct {
	medium Medium
	known  map[*xds.Resource]*bound
	pass   *pass // of the last Bind or Edit
	// users are the Keys of the resources that subscribe to what may be inlined, by its Key;
	// nil before an edit asks for them.
	users map[xds.Key][]xds.Key
}

// bound is a resource as the client is to see it, and what it was made of.
type bound struct {
	resource *xds.Resource
	// asked are the resources that it asks for.
	asked []answer
	// unlisted means that the resources inlined into it can't be listed by name.
	unlisted bool
}

// answer is a resource that another one asks for, nil where it is missing.
type answer struct {
	xds.Key
	resource *xds.Resource
	// inlined means that its content went into the one that asks.
	inlined bool
}

// holdsFor reports whether binding to s would give the same.
func (b *bound) holdsFor(s *xds.Snapshot) bool {
	if b.unlisted {
		return false
	}
	for _, was := range b.asked {
		is := s.Lookup(was.Type, was.Name)
		if is != was.resource && (was.inlined || is == nil || was.resource == nil) {
			return false
		}
	}
	return true
}

// Bind binds all resources of s. What is carried inside others only is left out. It returns nil
// where ctx has ended.
func (b *Binder) Bind(ctx context.Context, s *xds.Snapshot, m Medium) *xds.Snapshot {
	if b.medium != m {
		b.medium, b.known = m, nil
	}
	p := newPass(s, m)
	known := make(map[*xds.Resource]*bound, s.Len())
	resources := make([]*xds.Resource, 0, s.Len())
	for _, r := range s.All() {
		if ctx.Err() != nil {
			return nil
		}
		if r.Type == xds.VirtualHost && p.inline.VirtualHosts || r.Type == xds.Endpoints && p.inlined[r.Name] {
			continue
		}
		was := b.known[r]
		out := was
		if was == nil || !was.holdsFor(s) {
			out = p.bind(r)
			if was != nil && was.resource.Same(out.resource) {
				out.resource = was.resource
			}
		}
		known[r] = out
		resources = append(resources, out.resource)
	}
	b.known, b.pass, b.users = known, p, nil
	return xds.NewSnapshot(resources)
}

// pass binds the resources of one Snapshot.
type pass struct {
	snapshot *xds.Snapshot
	medium   Medium
	inline   Inline
	// foldScopes tells that scopes get their route configurations from this
	// snapshot: some listener says so, or none says otherwise. Where no listener
	// asks for scopes, one that was dropped may still drain, and read them.
	foldScopes bool
	// inlined are the endpoint assignments that move into clusters.
	inlined map[string]bool
	// hosts are the virtual hosts of VHDS by their route configuration, in order.
	hosts map[string][]*routev3.VirtualHost
}

func newPass(s *xds.Snapshot, m Medium) *pass {
	p := &pass{snapshot: s, medium: m, inline: m.Inline(), inlined: make(map[string]bool), hosts: make(map[string][]*routev3.VirtualHost)}
	for _, r := range s.Of(xds.VirtualHost) {
		routes := xds.RoutesOfHost(r.Name)
		p.hosts[routes] = append(p.hosts[routes], r.Message.(*routev3.VirtualHost))
	}
	p.foldScopes = p.inline.ScopeRoutes && scopesAskHere(s)
	if p.inline.Endpoints {
		for _, r := range s.Of(xds.Cluster) {
			if name := p.inlinedInto(r); name != "" {
				p.inlined[name] = true
			}
		}
	}
	return p
}

// scopesAskHere reports whether scopes get their route configurations from s.
func scopesAskHere(s *xds.Snapshot) bool {
	here, elsewhere := false, false
	for _, r := range s.Of(xds.Listener) {
		for _, sub := range r.Facts().Subscriptions {
			if isForScopes(sub) {
				here, elsewhere = here || s.Serves(sub), elsewhere || !s.Serves(sub)
			}
		}
	}
	return here || !elsewhere
}

// isForScopes reports whether a subscription is for the route configurations of scopes.
func isForScopes(sub xds.Subscription) bool {
	_, is := sub.Node.Message.(*hcmv3.ScopedRoutes)
	return is
}

// bind binds one resource. It is the same one where nothing has to change.
func (p *pass) bind(r *xds.Resource) *bound {
	out := &bound{resource: r, unlisted: r.Type == xds.ScopedRoutes && p.inline.ScopeRoutes}
	needed := r.Type == xds.ScopedRoutes && p.foldScopes
	for _, sub := range r.Facts().Subscriptions {
		needed = needed || p.snapshot.Serves(sub)
		out.unlisted = out.unlisted || sub.Target == xds.VirtualHost || sub.Target == xds.RouteConfiguration && (sub.Name == "" || p.inlinesHosts(sub))
		out.asked = append(out.asked, answer{
			xds.Key{Type: sub.Target, Name: sub.Name}, p.snapshot.Lookup(sub.Target, sub.Name),
			p.inlines(sub.Target),
		})
	}
	if needed {
		if changed := r.With(proto.Clone(r.Message)); changed.Edit(p.edit) {
			out.resource = changed
		}
	}
	return out
}

// edit binds one message and reports whether it changed.
func (p *pass) edit(n *xds.Node) bool {
	switch m := n.Message.(type) {
	case *routev3.RouteConfiguration:
		return p.inline.VirtualHosts && p.inlineHosts(m)
	case *routev3.ScopedRouteConfiguration:
		return p.foldScopes && p.inlineScopeRoutes(m)
	case *hcmv3.HttpConnectionManager:
		return p.inline.Routes && p.inlineRoutes(m)
	}
	sub, ok := n.Subscription()
	if !ok || !p.snapshot.Serves(sub) {
		return false
	}
	switch m := n.Message.(type) {
	case *clusterv3.Cluster:
		if p.inlined[sub.Name] {
			assignment := p.snapshot.Lookup(xds.Endpoints, sub.Name)
			m.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
			m.EdsClusterConfig = nil
			m.LoadAssignment = proto.CloneOf(assignment.Message.(*endpointv3.ClusterLoadAssignment))
			return true
		}
	case *hcmv3.ScopedRoutes:
		if p.inline.ScopeRoutes {
			sub.Set(nil) // its scopes carry their routes
			return true
		}
	}
	source := p.medium.Source(sub)
	if source == nil {
		return false
	}
	sub.Set(source)
	return true
}

// inlineHosts puts the virtual hosts of VHDS, named "<route configuration>/<host>",
// into their route configuration. Clusters stay unvalidated, as they are for VHDS;
// inlining alone would turn that on for inline routes.
func (p *pass) inlineHosts(m *routev3.RouteConfiguration) bool {
	if !xds.FromSnapshot(m.GetVhds().GetConfigSource()) {
		return false
	}
	m.Vhds = nil
	for _, host := range p.hosts[m.GetName()] {
		m.VirtualHosts = append(m.VirtualHosts, proto.CloneOf(host))
	}
	leaveClusters(m)
	return true
}

// inlineScopeRoutes puts a scope's route configuration into the scope.
func (p *pass) inlineScopeRoutes(m *routev3.ScopedRouteConfiguration) bool {
	routes := p.routes(m.GetRouteConfigurationName())
	if routes == nil {
		return false
	}
	m.RouteConfiguration, m.RouteConfigurationName = routes, ""
	return true
}

// inlineRoutes puts the route configuration that a connection manager asks this
// snapshot for into it.
func (p *pass) inlineRoutes(m *hcmv3.HttpConnectionManager) bool {
	if !xds.FromSnapshot(m.GetRds().GetConfigSource()) {
		return false
	}
	routes := p.routes(m.GetRds().GetRouteConfigName())
	if routes == nil || routes.GetVhds() != nil { // Envoy has no VHDS for routes in a listener
		return false
	}
	m.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: routes}
	return true
}

// routes returns a route configuration as it goes into another resource, or nil where there
// is none.
func (p *pass) routes(name string) *routev3.RouteConfiguration {
	r := p.snapshot.Lookup(xds.RouteConfiguration, name)
	if r == nil {
		return nil
	}
	m := proto.CloneOf(r.Message.(*routev3.RouteConfiguration))
	if p.inline.VirtualHosts {
		p.inlineHosts(m)
	}
	leaveClusters(m)
	return m
}

// inlinesHosts reports whether what a subscription asks for goes into the one who asks,
// and has virtual hosts going into it in turn.
func (p *pass) inlinesHosts(sub xds.Subscription) bool {
	r := p.snapshot.Lookup(xds.RouteConfiguration, sub.Name)
	return p.inline.Routes && r != nil && xds.FromSnapshot(r.Message.(*routev3.RouteConfiguration).GetVhds().GetConfigSource())
}

func leaveClusters(m *routev3.RouteConfiguration) {
	if m.ValidateClusters == nil {
		m.ValidateClusters = wrapperspb.Bool(false)
	}
}
