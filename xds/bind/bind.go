// Package bind turns a Snapshot into the resources for one medium. A config source that says "from this
// snapshot" (ads, self) becomes the config source of the medium. A resource that the medium can't carry by
// itself is inlined into the resources that ask for it. Everything else stays unchanged.
//
//	var binder bind.Binder
//	bound := binder.Bind(ctx, snapshot, medium)
//
// Package bind knows neither the encoding nor the place of the resources.
package bind

import (
	"context"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"xdspub/xds"
)

// Medium is a way by which resources reach a client. A Binder compares Media by ==: equal Media must bind alike.
type Medium interface {
	// Source returns the config source by which the client gets the resource of a subscription to the
	// Snapshot; nil keeps the present one.
	Source(xds.Subscription) *corev3.ConfigSource
	// Inline selects the resources to inline.
	Inline() Inline
}

// Inline selects the resources that Bind inlines into the resources that refer to them.
type Inline struct {
	// Endpoints puts endpoint assignments into their clusters.
	Endpoints bool
	// Routes puts route configurations into the connection managers that name them. The route configurations also
	// stay resources: scopes and draining listeners may ask for them.
	Routes bool
	// ScopeRoutes puts route configurations into the scopes that name them.
	ScopeRoutes bool
	// Groups puts resources that are asked for in groups into those that ask for them: virtual hosts into
	// route configurations, endpoints of LEDS into endpoint assignments.
	Groups bool
}

// Binder binds Snapshots, and caches the bound resources: a resource without a change has the same value in
// the next Snapshot. Not for concurrent use.
type Binder struct {
	medium Medium
	known  map[*xds.Resource]*bound
	pass   *pass // of the last Bind, as updated by Edit; nil before a Bind, and after a Bind that ctx ended
	// users has the resources with a dependency on a Key; nil until the first Edit after a Bind.
	users map[xds.Key][]*xds.Resource
}

// bound is a resource as the client sees it, with its dependencies.
type bound struct {
	resource     *xds.Resource
	dependencies []dependency
	scopes       bool // the result of pass.inlinesScope
}

// dependency has the resources that the bound form of another resource depends on. Most of them are inlined. Of a
// secret, only the existence counts.
type dependency struct {
	// Key is the Key of the resources, or of their group.
	xds.Key
	resources []*xds.Resource // none if the Snapshot lacks them
}

// holdsFor reports whether p would bind r to b again. r is the resource that b was made of, or an equal resource.
func (b *bound) holdsFor(p *pass, r *xds.Resource) bool {
	return b.scopes == p.inlinesScope(r) && !slices.ContainsFunc(b.dependencies, func(d dependency) bool {
		is := p.answers(d.Key)
		if d.Type == xds.Secret { // a secret is not inlined
			return len(is) != len(d.resources)
		}
		return !slices.Equal(is, d.resources)
	})
}

// Bind returns the bound resources of s for a medium, and unloads the resources of s. It leaves out resources that
// clients get only inside other resources. Bind returns nil if ctx has ended.
func (b *Binder) Bind(ctx context.Context, s *xds.Snapshot, m Medium) *xds.Snapshot {
	if b.medium != m {
		b.medium, b.known = m, nil
	}
	p := newPass(s, m)
	b.pass = nil
	known := make(map[*xds.Resource]*bound, s.Len())
	resources := make([]*xds.Resource, 0, s.Len())
	for _, r := range s.All() {
		if ctx.Err() != nil {
			return nil
		}
		if p.isInside(r) {
			continue
		}
		was := b.known[r]
		out := was
		if was == nil || !was.holdsFor(p, r) {
			out = p.bindAgain(r, was)
		}
		known[r] = out
		resources = append(resources, out.resource)
		// Unload now, so that only one resource at a time has two decoded messages.
		r.Unload()
		out.resource.Unload()
	}
	b.known, b.pass, b.users = known, p, nil
	return xds.NewSnapshot(resources)
}

// pass binds the resources of one Snapshot.
type pass struct {
	snapshot *xds.Snapshot
	medium   Medium
	inline   Inline
	// scopesHere and scopesElsewhere count the subscriptions of listeners to the route configurations of scopes:
	// those that the Snapshot answers, and those that another server answers.
	scopesHere, scopesElsewhere int
	// inlined counts the clusters that inline an endpoint assignment, by the name of the assignment.
	inlined map[string]int
	// groups has the resources that are asked for in groups, by type and group, sorted by name.
	groups map[xds.Key][]*xds.Resource
}

// newPass returns a pass over s with its counts and groups.
func newPass(s *xds.Snapshot, m Medium) *pass {
	p := &pass{snapshot: s, medium: m, inline: m.Inline(), inlined: make(map[string]int), groups: groupsOf(s)}
	for _, t := range []*xds.Type{xds.Listener, xds.Cluster} {
		for _, r := range s.Of(t) {
			p.count(r, 1)
		}
	}
	return p
}

// groupsOf returns the resources that are asked for in groups, by type and group, sorted by name.
func groupsOf(s *xds.Snapshot) map[xds.Key][]*xds.Resource {
	groups := make(map[xds.Key][]*xds.Resource)
	for _, t := range xds.Types {
		if t.Asked != xds.InGroups {
			continue
		}
		for _, r := range s.Of(t) {
			group := groupOf(r.Key)
			groups[group] = append(groups[group], r)
		}
	}
	return groups
}

// groupOf returns the Key of the group that a resource is in.
func groupOf(k xds.Key) xds.Key { return xds.Key{Type: k.Type, Name: k.Type.Group(k.Name)} }

// count adds n to the counts that r belongs to. Only listeners and clusters are counted.
func (p *pass) count(r *xds.Resource, n int) {
	switch r.Type {
	case xds.Listener:
		for _, sub := range r.Facts().Subscriptions {
			switch {
			case !isForScopes(sub):
			case p.snapshot.Serves(sub):
				p.scopesHere += n
			default:
				p.scopesElsewhere += n
			}
		}
	case xds.Cluster:
		if name := p.takesIn(r); name != "" {
			p.inlined[name] += n
		}
	}
}

// takesIn returns the name of the endpoint assignment that p inlines into a cluster if the assignment exists; ""
// for none.
func (p *pass) takesIn(cluster *xds.Resource) string {
	if !p.inline.Endpoints {
		return ""
	}
	sub, ok := (&xds.Node{Message: cluster.Message()}).Subscription()
	if !ok || !p.snapshot.Serves(sub) {
		return ""
	}
	return sub.Name
}

// inlinesScope reports whether r is a scope or has a list of scopes, and p inlines route configurations into scopes.
func (p *pass) inlinesScope(r *xds.Resource) bool {
	return p.inlinesScopes() && len(scopesOf(r)) > 0
}

// scopesOf returns the scope in a resource, or the scopes that a listener lists.
func scopesOf(r *xds.Resource) (scopes []*routev3.ScopedRouteConfiguration) {
	if r.Type == xds.ScopedRoutes {
		return []*routev3.ScopedRouteConfiguration{r.Message().(*routev3.ScopedRouteConfiguration)}
	}
	if !r.AsksFor(xds.RouteConfiguration) {
		return nil
	}
	for _, sub := range r.Facts().Subscriptions {
		if asks, ok := sub.Node.Message.(*hcmv3.ScopedRoutes); ok {
			scopes = append(scopes, asks.GetScopedRouteConfigurationsList().GetScopedRouteConfigurations()...)
		}
	}
	return scopes
}

// inlinesScopes reports whether p inlines route configurations into scopes. It does not if listeners subscribe to
// the route configurations of scopes, and only at other servers. It does if no listener subscribes: a removed
// listener may still drain, and read scopes.
func (p *pass) inlinesScopes() bool {
	return p.inline.ScopeRoutes && (p.scopesHere > 0 || p.scopesElsewhere == 0)
}

// isInside reports whether clients get a resource only inside other resources.
func (p *pass) isInside(r *xds.Resource) bool {
	return r.Type.Asked == xds.InGroups && p.inline.Groups || r.Type == xds.Endpoints && p.inlined[r.Name] > 0
}

// isForScopes reports whether a subscription is for the route configurations of scopes.
func isForScopes(sub xds.Subscription) bool {
	_, is := sub.Node.Message.(*hcmv3.ScopedRoutes)
	return is
}

// bindAgain is bind, but the result has the *xds.Resource of was if the new bound resource equals it. was is nil if
// the resource was not bound before.
func (p *pass) bindAgain(r *xds.Resource, was *bound) *bound {
	out := p.bind(r)
	if was != nil && was.resource.Same(out.resource) && was.resource.ForSame(out.resource) {
		out.resource = was.resource
	}
	return out
}

// bind binds a resource. The result has the resource itself if no message changes.
func (p *pass) bind(r *xds.Resource) *bound {
	out := &bound{resource: r, dependencies: p.dependencies(nil, r), scopes: p.inlinesScope(r)}
	needed := out.scopes || slices.ContainsFunc(r.Facts().Subscriptions, p.snapshot.Serves)
	if needed {
		if composed, changed := r.Compose(p.edit); changed {
			out.resource = composed
		}
	}
	return out
}

// dependencies adds the dependencies of a resource to a list.
func (p *pass) dependencies(list []dependency, r *xds.Resource) []dependency {
	for _, sub := range r.Facts().Subscriptions {
		switch sub.Target {
		case xds.Secret: // Snapshot.Serves looks for the secret
			if sub.Source.GetConfigSourceSpecifier() == nil {
				list = p.depends(list, sub.Target, sub.Name)
			}
		case xds.Endpoints, xds.RouteConfiguration, xds.VirtualHost, xds.LocalityEndpoints:
			if p.inlines(sub) {
				list = p.depends(list, sub.Target, sub.Name)
			}
		}
	}
	if p.inline.ScopeRoutes {
		for _, scope := range scopesOf(r) {
			list = p.depends(list, xds.RouteConfiguration, scope.GetRouteConfigurationName())
		}
	}
	return list
}

// depends adds the dependency on a resource or a group to a list, and the dependencies of these resources.
func (p *pass) depends(list []dependency, t *xds.Type, name string) []dependency {
	key := xds.Key{Type: t, Name: name}
	if slices.ContainsFunc(list, func(d dependency) bool { return d.Key == key }) {
		return list
	}
	is := p.answers(key)
	list = append(list, dependency{key, is})
	for _, r := range is {
		list = p.dependencies(list, r)
	}
	return list
}

// inlines reports whether p inlines the resources of a subscription into the resource that subscribes.
func (p *pass) inlines(sub xds.Subscription) bool {
	if !p.snapshot.Serves(sub) {
		return false
	}
	switch sub.Target {
	case xds.Endpoints:
		return p.inline.Endpoints
	case xds.VirtualHost, xds.LocalityEndpoints:
		return p.inline.Groups
	}
	return p.inline.Routes && !isForScopes(sub)
}

// answers returns the resources of a dependency: a group, or the first resource of a Key.
func (p *pass) answers(k xds.Key) []*xds.Resource {
	if group := p.groups[k]; group != nil || k.Type == xds.VirtualHost {
		return group
	}
	if r := p.snapshot.Lookup(k.Type, k.Name); r != nil {
		return []*xds.Resource{r}
	}
	return nil
}

// edit binds one message of the resource that c composes, and reports whether it changed.
func (p *pass) edit(c *xds.Composer, n *xds.Node) bool {
	switch m := n.Message.(type) {
	case *routev3.RouteConfiguration:
		return p.inlineHosts(c, m)
	case *endpointv3.ClusterLoadAssignment:
		return p.inlineEndpoints(c, m)
	case *routev3.ScopedRouteConfiguration:
		return p.inlinesScopes() && p.inlineScopeRoutes(c, m)
	case *hcmv3.HttpConnectionManager:
		return p.inline.Routes && p.inlineRoutes(c, m)
	}
	sub, ok := n.Subscription()
	if !ok || !p.snapshot.Serves(sub) {
		return false
	}
	switch m := n.Message.(type) {
	case *clusterv3.Cluster:
		if assignment := p.snapshot.Lookup(xds.Endpoints, sub.Name); assignment != nil && p.inlined[sub.Name] > 0 {
			m.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
			m.EdsClusterConfig = nil
			m.LoadAssignment = c.Take(assignment).(*endpointv3.ClusterLoadAssignment)
			p.inlineEndpoints(c, m.LoadAssignment)
			return true
		}
	case *hcmv3.ScopedRoutes:
		if p.inline.ScopeRoutes {
			sub.Set(nil) // the scopes have their routes inlined
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

// inlinesHosts reports whether p inlines virtual hosts of VHDS into a route configuration.
func (p *pass) inlinesHosts(m *routev3.RouteConfiguration) bool {
	return p.inline.Groups && xds.FromSnapshot(m.GetVhds().GetConfigSource())
}

// inlineHosts puts the virtual hosts of VHDS, named "<route configuration>/<host>", into their route configuration.
// By default, Envoy validates the clusters of inline routes, but not those of VHDS. inlineHosts keeps them
// unvalidated.
func (p *pass) inlineHosts(c *xds.Composer, m *routev3.RouteConfiguration) bool {
	if !p.inlinesHosts(m) {
		return false
	}
	m.Vhds = nil
	for _, host := range p.groups[xds.Key{Type: xds.VirtualHost, Name: m.GetName()}] {
		m.VirtualHosts = append(m.VirtualHosts, c.Take(host).(*routev3.VirtualHost))
	}
	leaveClusters(m)
	return true
}

// inlineEndpoints puts endpoints of LEDS into the localities that ask for them.
func (p *pass) inlineEndpoints(c *xds.Composer, m *endpointv3.ClusterLoadAssignment) (changed bool) {
	if !p.inline.Groups {
		return false
	}
	for _, locality := range m.GetEndpoints() {
		leds := locality.GetLedsClusterLocalityConfig()
		if !xds.FromSnapshot(leds.GetLedsConfig()) {
			continue
		}
		locality.LbConfig, changed = nil, true
		for _, endpoint := range p.answers(xds.Key{Type: xds.LocalityEndpoints, Name: leds.GetLedsCollectionName()}) {
			locality.LbEndpoints = append(locality.LbEndpoints, c.Take(endpoint).(*endpointv3.LbEndpoint))
		}
	}
	return changed
}

// inlineScopeRoutes puts a scope's route configuration into the scope.
func (p *pass) inlineScopeRoutes(c *xds.Composer, m *routev3.ScopedRouteConfiguration) bool {
	r := p.snapshot.Lookup(xds.RouteConfiguration, m.GetRouteConfigurationName())
	if r == nil {
		return false
	}
	m.RouteConfiguration, m.RouteConfigurationName = p.routes(c, r), ""
	return true
}

// inlineRoutes puts the route configuration that a connection manager asks this Snapshot for into the connection
// manager.
func (p *pass) inlineRoutes(c *xds.Composer, m *hcmv3.HttpConnectionManager) bool {
	if !xds.FromSnapshot(m.GetRds().GetConfigSource()) {
		return false
	}
	r := p.snapshot.Lookup(xds.RouteConfiguration, m.GetRds().GetRouteConfigName())
	if r == nil {
		return false
	}
	if routes := r.Message().(*routev3.RouteConfiguration); routes.GetVhds() != nil && !p.inlinesHosts(routes) {
		return false // Envoy has no VHDS for routes in a listener
	}
	m.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: p.routes(c, r)}
	return true
}

// routes returns the message of a route configuration in the form in which p inlines it.
func (p *pass) routes(c *xds.Composer, r *xds.Resource) *routev3.RouteConfiguration {
	m := c.Take(r).(*routev3.RouteConfiguration)
	p.inlineHosts(c, m)
	leaveClusters(m)
	return m
}

// leaveClusters turns off the validation of clusters, unless m says whether Envoy validates them.
func leaveClusters(m *routev3.RouteConfiguration) {
	if m.ValidateClusters == nil {
		m.ValidateClusters = wrapperspb.Bool(false)
	}
}
