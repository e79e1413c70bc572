package graph

import (
	"context"
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"xdspub/diag"
	"xdspub/xds"
)

// outline is what a Graph shows of a resource.
type outline struct {
	// parts has the resource itself first. A part stands behind the part around it.
	parts []part
	refs  []reference
}

// part is a resource or a part of a resource.
type part struct {
	kind          Kind
	path          xds.Path
	around        int // index of the part around this part; -1 for the resource
	label, detail string
	message       proto.Message
}

// reference is a reference of the catalogue, or a subscription.
type reference struct {
	from   int // index of the part that refers
	target xds.Key
	path   xds.Path
	// subscription is nil for a reference by name.
	subscription *xds.Subscription
	// atRunTime means that target.Name is the name of a header that has the name.
	atRunTime bool
}

// headerField is the name of the fields with a header that names the cluster of each request.
const headerField = "cluster_header"

// outlineOf returns the outline of a resource.
func outlineOf(ctx context.Context, r *xds.Resource) (*outline, error) {
	o := &outline{}
	parts := make(map[*xds.Node]int)
	within := func(n *xds.Node) int {
		for ; n != nil; n = n.Parent {
			if i, ok := parts[n]; ok {
				return i
			}
		}
		return 0
	}
	err := r.Walk(ctx, func(n *xds.Node) {
		if n.Parent == nil {
			parts[n] = 0
			label, detail := describe(n)
			if r.Type != xds.VirtualHost || label == "" {
				label = r.Name
			}
			o.parts = append(o.parts, part{kindOf(r.Type), "", -1, label, detail, n.Message})
		} else if kind := kindOfPart(n); kind != "" && !n.InMetadata() {
			around := within(n.Parent)
			label, detail := describe(n)
			parts[n] = len(o.parts)
			o.parts = append(o.parts, part{kind, n.Path(), around, label, detail, n.Message})
		}
		subscription, subscribes := n.Subscription()
		uses := n.Uses()
		if !subscribes && len(uses) == 0 || n.InMetadata() {
			return
		}
		from := within(n)
		if subscribes {
			o.refs = append(o.refs, reference{
				from: from, target: xds.Key{Type: subscription.Target, Name: subscription.Name}, path: subscription.NamePath, subscription: &subscription,
			})
		}
		for _, use := range uses {
			if named(use, subscribes) {
				o.refs = append(o.refs, reference{
					from: from, target: xds.Key{Type: use.Target, Name: use.Name}, path: use.Path(),
					atRunTime: use.Field.Name() == headerField,
				})
			}
		}
	})
	return o, err
}

// named reports whether a use refers to a resource by its name alone. A message that subscribes names the resource in
// its Subscription. The name of a filter names an extension config only if the filter has a config source, which is a
// Subscription, too.
func named(use xds.Use, subscribes bool) bool {
	switch use.Kind {
	case xds.ClusterName, xds.ListenerName:
		return true
	case xds.Subscribed:
		return !subscribes && use.Target != nil && use.Target != xds.ExtensionConfig && use.Target != xds.Endpoints && use.Target != xds.Runtime
	}
	return false
}

// kindOfPart returns the Kind of a message below the root of a resource; empty if the message is drawn as part of the
// message around it.
func kindOfPart(n *xds.Node) Kind {
	switch n.Message.(type) {
	case *listenerv3.FilterChain:
		return FilterChain
	case *routev3.ScopedRouteConfiguration:
		return Scope
	case *routev3.RouteConfiguration:
		return RouteConfiguration
	case *routev3.VirtualHost:
		return VirtualHost
	case *routev3.Route:
		return Route
	case *endpointv3.ClusterLoadAssignment:
		return Endpoints
	}
	return ""
}

// mostText is the length, in bytes, of the longest text that a Node keeps.
const mostText = 200

// describe returns the label and the detail of a message. It hides a secret in the text of a part.
func describe(n *xds.Node) (label, detail string) {
	switch m := n.Message.(type) {
	case *listenerv3.Listener:
		var sockets []string
		for _, s := range xds.Sockets(m) {
			sockets = append(sockets, s.String())
		}
		if m.GetInternalListener() != nil {
			sockets = append(sockets, "internal")
		}
		detail = diag.Few(sockets, 2)
	case *listenerv3.FilterChain:
		label, detail = m.GetName(), chainDetail(m)
		if label == "" {
			label = last(n.Path())
		}
	case *routev3.ScopedRouteConfiguration:
		label = m.GetName()
	case *routev3.RouteConfiguration:
		label, detail = m.GetName(), "in the listener"
		if n.Parent == nil {
			detail = ""
		}
	case *routev3.VirtualHost:
		label, detail = m.GetName(), diag.Few(m.GetDomains(), 3)
	case *routev3.Route:
		label, detail = matchOf(m.GetMatch()), actionOf(m)
	case *clusterv3.Cluster:
		detail = m.GetType().String()
		if custom := m.GetClusterType(); custom != nil {
			detail = custom.GetName()
		}
	case *endpointv3.ClusterLoadAssignment:
		count := 0
		for _, l := range m.GetEndpoints() {
			count += len(l.GetLbEndpoints())
		}
		label, detail = m.GetClusterName(), diag.Count(count, "endpoint")
		if n.Parent != nil {
			label = "in the cluster"
		}
	case *tlsv3.Secret:
		if field := m.ProtoReflect().WhichOneof(m.ProtoReflect().Descriptor().Oneofs().ByName("type")); field != nil {
			detail = strings.ReplaceAll(string(field.Name()), "_", " ")
		}
	}
	return diag.Clip(diag.Hide(label), mostText), diag.Clip(diag.Hide(detail), mostText)
}

// last returns the last step of a path: filter_chains[1] of a.filter_chains[1].
func last(p xds.Path) string { return string(p[strings.LastIndexByte(string(p), '.')+1:]) }

// chainDetail returns the server names of a filter chain or, without names, the name of its last filter.
func chainDetail(m *listenerv3.FilterChain) string {
	if names := m.GetFilterChainMatch().GetServerNames(); len(names) > 0 {
		return diag.Few(names, 2)
	}
	if filters := m.GetFilters(); len(filters) > 0 {
		name := filters[len(filters)-1].GetName()
		return name[strings.LastIndexByte(name, '.')+1:]
	}
	return ""
}

// matchOf returns the path that a route matches.
func matchOf(m *routev3.RouteMatch) string {
	switch p := m.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix:
		return "prefix " + p.Prefix
	case *routev3.RouteMatch_Path:
		return "path " + p.Path
	case *routev3.RouteMatch_PathSeparatedPrefix:
		return "below " + p.PathSeparatedPrefix
	case *routev3.RouteMatch_SafeRegex:
		return "regex " + p.SafeRegex.GetRegex()
	case *routev3.RouteMatch_ConnectMatcher_:
		return "CONNECT"
	case *routev3.RouteMatch_PathMatchPolicy:
		return "path policy"
	}
	return "any path"
}

// actionOf returns what a route does with a request that goes to no cluster, or the name of the route.
func actionOf(m *routev3.Route) string {
	switch a := m.GetAction().(type) {
	case *routev3.Route_Redirect:
		return "redirect"
	case *routev3.Route_DirectResponse:
		return fmt.Sprintf("status %d", a.DirectResponse.GetStatus())
	case *routev3.Route_NonForwardingAction:
		return "for a server"
	}
	return m.GetName()
}
