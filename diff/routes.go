package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"xdspub/xds"
)

// routing finds the requests that go to another target.
type routing struct {
	sides *sides
	list  *effectList
	// done has the names of the compared route configurations.
	done map[string]bool
}

func newRouting(s *sides, l *effectList) *routing {
	return &routing{s, l, make(map[string]bool)}
}

// edited adds the effects of a changed route configuration, or of a changed virtual host of one.
func (r *routing) edited(e xds.Edited) {
	name := e.Key().Name
	if e.Key().Type == xds.VirtualHost {
		name = xds.RoutesOfHost(name)
	}
	if r.done[name] {
		return
	}
	r.done[name] = true
	was, is := tableOf(r.sides.was, name), tableOf(r.sides.is, name)
	k := xds.Key{Type: xds.RouteConfiguration, Name: name}
	switch {
	case was == nil || is == nil:
		r.list.applied(e)
	case !isAsked(r.sides.was, name) && !isAsked(r.sides.is, name):
		r.list.add(k, Effect{Kind: Applied}, "changes, and no listener asks for it")
	case !r.compare(k, was, is):
		r.list.add(k, Effect{Kind: Applied}, "changes for new requests; their targets stay, and no connection closes")
	}
}

// isAsked reports whether a listener of a Snapshot may ask for a route configuration. A Snapshot without listeners has
// its listeners elsewhere.
func isAsked(s *xds.Snapshot, name string) bool {
	listeners := s.Of(xds.Listener)
	return len(listeners) == 0 || slices.ContainsFunc(listeners, func(l *xds.Resource) bool {
		return l.AsksFor(xds.RouteConfiguration) && slices.ContainsFunc(l.Facts().Subscriptions, func(sub xds.Subscription) bool {
			return sub.Target == xds.RouteConfiguration && (sub.Name == name || sub.Name == "") // scopes name any routes
		})
	})
}

// tableOf returns a route configuration with the virtual hosts that VHDS adds to it; nil if the Snapshot has none.
func tableOf(s *xds.Snapshot, name string) *table {
	r := s.Lookup(xds.RouteConfiguration, name)
	if r == nil {
		return nil
	}
	of := r.Message().(*routev3.RouteConfiguration)
	t := newTable(of)
	if of.GetVhds() != nil {
		for _, host := range s.Of(xds.VirtualHost) {
			if xds.RoutesOfHost(host.Name) == name {
				t.add(host.Message().(*routev3.VirtualHost))
			}
		}
	}
	return t
}

// listener adds the effects of a changed listener on requests: its route configurations, inline and by name. Filter
// chains and connection managers are paired by name, else by number.
func (r *routing) listener(e xds.Edited) {
	if e.Was == nil || e.Is == nil {
		return
	}
	was, is := r.managers(r.sides.was, e.Was), r.managers(r.sides.is, e.Is)
	for _, at := range keys(was, is) {
		a, b := was[at], is[at]
		if a.table == nil || b.table == nil || a.name != "" && a.name == b.name { // the route configuration has its own effects
			continue
		}
		r.compare(e.Key(), a.table, b.table)
	}
}

// manager is the route configuration of a connection manager. name is its name if it comes by RDS.
type manager struct {
	name  string
	table *table
}

// managers returns the connection managers of a listener.
func (r *routing) managers(s *xds.Snapshot, of *xds.Resource) map[string]manager {
	all := make(map[string]manager)
	number := make(map[string]int)
	of.Registry.Walk(of.Message(), func(n *xds.Node) {
		m, ok := n.Message.(*hcmv3.HttpConnectionManager)
		if !ok {
			return
		}
		at := ""
		if c, _ := xds.Enclosing[*listenerv3.FilterChain](n); c != nil {
			if at = c.GetName(); at == "" {
				at = canonical(c.GetFilterChainMatch().ProtoReflect())
			}
		}
		key := at + "\x00" + strconv.Itoa(number[at])
		number[at]++
		switch routes := m.GetRouteSpecifier().(type) {
		case *hcmv3.HttpConnectionManager_RouteConfig:
			all[key] = manager{"", newTable(routes.RouteConfig)}
		case *hcmv3.HttpConnectionManager_Rds:
			name := routes.Rds.GetRouteConfigName()
			all[key] = manager{name, tableOf(s, name)}
		}
	})
	return all
}

// compare adds an effect for each example request that goes to another target. moves is true if compare adds an effect.
func (r *routing) compare(k xds.Key, was, is *table) (moves bool) {
	seen := make(map[string]bool)
	budget := maxMatches
	for _, example := range append(was.examples(), is.examples()...) {
		if budget -= was.size + is.size; budget < 0 {
			r.list.add(k, Effect{Kind: RouteMoves}, "has too many routes: not all were compared by example requests")
			return true
		}
		a, b := was.route(example), is.route(example)
		if a.target == b.target || seen[example.String()] {
			continue
		}
		seen[example.String()], moves = true, true
		part := b.host
		if part == "" {
			part = a.host
		}
		r.list.add(k, Effect{Kind: RouteMoves, Part: part, Request: example.String(), Was: a.target, Is: b.target},
			": %s goes to %s instead of %s", example, b.target, a.target)
	}
	return r.unknown(k, was, is) || moves
}

// maxMatches bounds the routes that compare asks for all examples of two tables.
const maxMatches = 20_000_000

// unknown adds an effect for each route without an example request whose target differs.
func (r *routing) unknown(k xds.Key, was, is *table) (moves bool) {
	for _, key := range keys(was.opaque, is.opaque) {
		a, b := was.targets[key], is.targets[key]
		if a.target == b.target {
			continue
		}
		before, after := a.target, b.target
		if before == "" {
			before = "no route"
		}
		if after == "" {
			after = "no route"
		}
		moves = true
		host := a.host + b.host
		if a.host == b.host {
			host = a.host
		}
		r.list.add(k, Effect{Kind: RouteMoves, Part: host, Was: before, Is: after},
			"has a route with conditions in virtual host %s that goes to %s instead of %s", host, after, before)
	}
	return moves
}

// targetOf returns the target of a route in words.
func targetOf(r *routev3.Route) string {
	switch action := r.GetAction().(type) {
	case *routev3.Route_Route:
		return clusterTarget(action.Route)
	case *routev3.Route_Redirect:
		return redirectTarget(action.Redirect)
	case *routev3.Route_DirectResponse:
		return fmt.Sprintf("response %d", action.DirectResponse.GetStatus())
	case *routev3.Route_FilterAction, *routev3.Route_NonForwardingAction:
		return "a filter"
	}
	return "nothing"
}

func clusterTarget(a *routev3.RouteAction) string {
	switch to := a.GetClusterSpecifier().(type) {
	case *routev3.RouteAction_Cluster:
		return "cluster " + strconv.Quote(to.Cluster)
	case *routev3.RouteAction_ClusterHeader:
		return "the cluster in header " + strconv.Quote(to.ClusterHeader)
	case *routev3.RouteAction_WeightedClusters:
		return weightedTarget(to.WeightedClusters)
	case *routev3.RouteAction_ClusterSpecifierPlugin:
		return "the cluster of plugin " + strconv.Quote(to.ClusterSpecifierPlugin)
	case *routev3.RouteAction_InlineClusterSpecifierPlugin:
		return "the cluster of a plugin " + fingerprint([]byte(canonical(to.InlineClusterSpecifierPlugin.ProtoReflect())))
	}
	return "nothing"
}

// weightedTarget returns weighted clusters with their shares.
func weightedTarget(w *routev3.WeightedCluster) string {
	total := 0.0
	for _, c := range w.GetClusters() {
		total += float64(c.GetWeight().GetValue())
	}
	var parts []string
	for _, c := range w.GetClusters() {
		name := strconv.Quote(c.GetName())
		if c.GetName() == "" {
			name = "the cluster in header " + strconv.Quote(c.GetClusterHeader())
		}
		if c.GetWeight().GetValue() > 0 {
			parts = append(parts, fmt.Sprintf("%s %s%%", name, strconv.FormatFloat(100*float64(c.GetWeight().GetValue())/total, 'f', -1, 32)))
		}
	}
	return "clusters " + strings.Join(parts, ", ")
}

func redirectTarget(r *routev3.RedirectAction) string {
	to := "a redirect"
	if r.GetHttpsRedirect() {
		to += " to https"
	} else if r.GetSchemeRedirect() != "" {
		to += " to " + r.GetSchemeRedirect()
	}
	for _, part := range []string{r.GetHostRedirect(), r.GetPathRedirect(), r.GetPrefixRewrite()} {
		if part != "" {
			to += " " + strconv.Quote(part)
		}
	}
	return to + " (" + strings.ToLower(strings.ReplaceAll(r.GetResponseCode().String(), "_", " ")) + ")"
}
