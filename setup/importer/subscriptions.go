package importer

import (
	"fmt"
	"maps"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"xdspub/diag"
	"xdspub/xds"
)

// subscribers are subscriptions to a type from one source, which share a finding.
type subscribers struct {
	of   *xds.Type
	from string
	left bool // the subscriptions keep their source
}

// subscriptions imports the resources that imported resources subscribe to. It changes the config sources of the
// subscriptions to ads, which means the source tree. A subscription from another source than ADS keeps its source
// if the dump lacks the resource.
func (r *reading) subscriptions() {
	first := make(map[subscribers]func(message string))
	count := make(map[subscribers]int)
	for n := 0; n < len(r.items); n++ { // the loop adds items
		i := r.items[n]
		if i.stays != "" {
			r.staticSubscriptions(i)
			continue
		}
		changed := i.With(proto.Clone(i.Message()))
		is := changed.Edit(func(node *xds.Node) bool {
			s, ok := node.Subscription()
			if !ok {
				return r.dropVHDS(i, node)
			}
			return r.subscription(i, s, func(kind subscribers) {
				if count[kind]++; count[kind] == 1 {
					of := i.Resource
					first[kind] = func(message string) { r.warn(of, s.SourcePath, message, "") }
				}
			})
		})
		if is {
			i.Resource = changed
		}
	}
	for kind, tell := range first {
		what := diag.Count(count[kind], kind.of.API+" subscription")
		if kind.left {
			tell(fmt.Sprintf("%s to %s: not imported, and not changed, since Envoy shows neither keys nor the files that they are in", what, kind.from))
		} else {
			tell(fmt.Sprintf("%s to %s: the source tree has these resources now (ads: {})", what, kind.from))
		}
	}
	r.unasked()
}

// subscription imports the resources of a subscription. It returns true if it changes the config source. It calls
// told, with the kind of the subscription, if a shared finding must report the subscription.
func (r *reading) subscription(i *item, s xds.Subscription, told func(subscribers)) bool {
	given := s.Source.GetConfigSourceSpecifier() != nil
	ours := !given || xds.FromSnapshot(s.Source)
	switch {
	case s.Target == xds.VirtualHost: // comes with its route configuration
		return false
	case s.Target == xds.Secret && !given: // a static secret
		return false
	case s.Target == xds.Secret && !ours:
		told(subscribers{s.Target, sourceOf(s.Source), true})
		return false
	}
	if !r.takeAll(i, s, ours) || ours {
		return false
	}
	told(subscribers{s.Target, sourceOf(s.Source), false})
	s.Set(fromTree(s.Source))
	return true
}

// fromTree returns a config source that leads to the source tree, with the other settings of source.
func fromTree(source *corev3.ConfigSource) *corev3.ConfigSource {
	is := proto.CloneOf(source)
	is.ConfigSourceSpecifier = &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}
	return is
}

// takeAll imports the resources that a subscription asks for. It returns true if the source tree has each of these
// resources. ours means that the subscription asks the ADS server, or has no config source.
func (r *reading) takeAll(i *item, s xds.Subscription, ours bool) bool {
	if s.Name != "" {
		return r.take(i, s, xds.Key{Type: s.Target, Name: s.Name}, ours)
	}
	if s.Target == xds.ScopedRoutes && slices.ContainsFunc(r.scopes, func(set []string) bool { return !slices.Equal(set, r.scopes[0]) }) {
		return r.left(i, s, ours, "the listeners of the dump have several sets of scopes, and a source tree has one")
	}
	all := true
	for _, k := range r.scopeKeys(s.Target) {
		all = r.take(i, s, k, ours) && all
	}
	return all
}

// scopeKeys returns the keys of the scopes in the dump or, if t is RouteConfiguration, of the route configurations
// that they name.
func (r *reading) scopeKeys(t *xds.Type) (keys []xds.Key) {
	for k, offers := range r.offers {
		if k.Type != xds.ScopedRoutes {
			continue
		}
		if t == xds.RouteConfiguration {
			if k = (xds.Key{Type: t, Name: r.word(offers[0].part, "route_configuration_name")}); k.Name == "" {
				continue // the scope contains its routes
			}
		}
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compare)
	return slices.Compact(keys)
}

// take imports the resource with a key. It returns true if the source tree has the resource, or if a finding
// reports why not.
func (r *reading) take(i *item, s xds.Subscription, k xds.Key, ours bool) bool {
	offers := r.offers[k]
	for n := range offers {
		if offers[n].resource == nil {
			if offers[n].resource = r.resource(offers[n].part, k.Type); offers[n].resource == nil {
				return true // a finding reports the reason
			}
			if k.Type == xds.Endpoints {
				offers[n].resource = r.asWritten(offers[n].resource)
			}
		}
	}
	switch {
	case len(offers) == 0, !ours && hasNone(offers[0].resource):
		return r.left(i, s, ours, fmt.Sprintf("the dump has no content of %s", k))
	case slices.ContainsFunc(offers, func(o offer) bool { return !sameContent(o.resource, offers[0].resource) }):
		return r.left(i, s, ours, fmt.Sprintf("the dump has several of %s, and a source tree has one", k))
	case !offers[0].taken:
		offers[0].taken = true
		r.items = append(r.items, &item{Resource: offers[0].resource, source: offers[0].part})
	}
	return true
}

// hasNone reports whether an endpoint assignment has no endpoints. Envoy may not have got an answer.
func hasNone(of *xds.Resource) bool {
	m, ok := of.Message().(*endpointv3.ClusterLoadAssignment)
	return ok && len(m.GetEndpoints()) == 0
}

// left reports a resource that the source tree lacks, and the reason why. It always returns false.
func (r *reading) left(i *item, s xds.Subscription, ours bool, why string) bool {
	message := fmt.Sprintf("%s asks for it", i.Key)
	if !ours {
		message = fmt.Sprintf("%s still asks %s", i.Key, sourceOf(s.Source))
	}
	help := ""
	if ours {
		help = "write it into the source tree, or make another dump once Envoy has it"
	}
	r.warn(i.Resource, s.NamePath, why+": "+message, help)
	return false
}

// sourceOf returns the words for a config source in messages.
func sourceOf(source *corev3.ConfigSource) string {
	if path := xds.PathOf(source); path != "" {
		return fmt.Sprintf("the file %q", diag.Clip(path, diag.MaxWord))
	}
	switch m := source.GetConfigSourceSpecifier().(type) {
	case *corev3.ConfigSource_ApiConfigSource:
		for _, g := range m.ApiConfigSource.GetGrpcServices() {
			if name := g.GetEnvoyGrpc().GetClusterName(); name != "" {
				return fmt.Sprintf("cluster %q", diag.Clip(name, diag.MaxWord))
			}
		}
		for _, name := range m.ApiConfigSource.GetClusterNames() {
			return fmt.Sprintf("cluster %q", diag.Clip(name, diag.MaxWord))
		}
		return "a server"
	default:
		return "the ADS server"
	}
}

// dropVHDS removes the subscription of a route configuration to virtual hosts. The dump already lists their virtual
// hosts in the route configuration.
func (r *reading) dropVHDS(i *item, n *xds.Node) bool {
	routes, ok := n.Message.(*routev3.RouteConfiguration)
	if !ok || routes.GetVhds() == nil {
		return false
	}
	r.warn(i.Resource, n.Path().Field("vhds"), fmt.Sprintf("%s has its virtual hosts in its file, as many as Envoy has asked for: "+
		"a dump does not say which of them came by VHDS", i.Key), "")
	routes.Vhds = nil
	return true
}

// staticSubscriptions imports the resources that a resource in the bootstrap asks the ADS server for, and reports
// these subscriptions.
func (r *reading) staticSubscriptions(i *item) {
	for _, s := range i.Facts().Subscriptions {
		if xds.FromSnapshot(s.Source) {
			r.takeAll(i, s, true)
			r.noteAsksServer(i, s)
		}
	}
}

// noteAsksServer reports a subscription of a resource in the bootstrap to an ADS server.
func (d *draft) noteAsksServer(i *item, s xds.Subscription) {
	d.warn(i.Resource, s.SourcePath, fmt.Sprintf("%s stays in the bootstrap, and asks an ADS server there: this works "+
		"with a server, and not with files", i.Key), "give bootstrap envoy --transport ads, or change this source")
}

// unasked reports resources of the dump that are not imported because nothing subscribes to them.
func (r *reading) unasked() {
	for _, k := range slices.SortedFunc(maps.Keys(r.offers), compare) {
		for _, o := range r.offers[k] {
			if !o.taken && k.Type != xds.Endpoints && k.Type != xds.Secret {
				r.warnAt(o.part, fmt.Sprintf("%s is not imported: no listener or cluster that is imported asks for it", k), "")
			}
		}
	}
}
