package route

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var unreachableRoute = &validate.Rule{
	Code:     "unreachable-route",
	Severity: diag.Warning,
	Doc: `A route is unreachable: an earlier route matches all its requests.

Envoy uses the first route that matches, not the longest. This rule reports only certain cases:
the earlier route matches by path alone, without headers, query parameters or other conditions,
and matches every path of the later one.`,
	Messages: []protoreflect.FullName{
		"envoy.config.route.v3.RouteList",
		"envoy.config.route.v3.VirtualHost",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		taken := takenPaths{prefixes: map[string]int{}, paths: map[string]int{}, separated: map[string]int{}}
		for i, route := range n.Message.(interface{ GetRoutes() []*routev3.Route }).GetRoutes() {
			if first, ok := taken.find(route.GetMatch()); ok {
				routes := n.Path().Field("routes")
				p.Report(validate.Finding{
					Path:    routes.Index(i).Field("match"),
					Message: "an earlier route matches every request that this one matches",
					Help:    "move it before that one, or remove it",
					Related: facts.Related(p.Resource, routes.Index(first).Field("match"), "the earlier route is here"),
				})
				continue
			}
			taken.add(i, route)
		}
	},
}

// takenPaths maps a path to the index of the route that matches by this path alone.
type takenPaths struct {
	prefixes, paths, separated map[string]int
}

func (t *takenPaths) add(i int, route *routev3.Route) {
	m := route.GetMatch()
	action := route.GetRoute()
	if hasConditions(m) || !matchesCase(m) || action.GetClusterSpecifierPlugin() != "" || action.GetInlineClusterSpecifierPlugin() != nil {
		return // a cluster specifier plugin may pass the request to the next route
	}
	switch s := m.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix:
		t.prefixes[s.Prefix] = i
	case *routev3.RouteMatch_Path:
		t.paths[s.Path] = i
	case *routev3.RouteMatch_PathSeparatedPrefix:
		t.separated[s.PathSeparatedPrefix] = i
	}
}

// find returns the index of an earlier route that matches all requests that m matches.
func (t *takenPaths) find(m *routev3.RouteMatch) (i int, ok bool) {
	var path string
	open := false // m also matches longer paths
	switch s := m.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix:
		path, open = s.Prefix, true
	case *routev3.RouteMatch_Path:
		path = s.Path
	case *routev3.RouteMatch_PathSeparatedPrefix:
		path = s.PathSeparatedPrefix
	case *routev3.RouteMatch_SafeRegex, *routev3.RouteMatch_PathMatchPolicy:
		path, open = "/", true
	default: // CONNECT requests may have no path
		return 0, false
	}
	if !matchesCase(m) {
		path, open = "/", true
	}
	if i, ok := t.paths[path]; ok && !open && m.GetPathSeparatedPrefix() == "" {
		return i, true
	}
	for end := range len(path) + 1 {
		if i, ok := t.prefixes[path[:end]]; ok {
			return i, true
		}
		whole := end == len(path)
		if i, ok := t.separated[path[:end]]; ok && (whole && !open || !whole && path[end] == '/') {
			return i, true
		}
	}
	return 0, false
}

// hasConditions reports whether a route checks more than the path of a request.
func hasConditions(m *routev3.RouteMatch) bool {
	return len(m.GetHeaders())+len(m.GetQueryParameters())+len(m.GetCookies())+len(m.GetDynamicMetadata())+len(m.GetFilterState()) > 0 ||
		m.GetRuntimeFraction() != nil || m.GetGrpc() != nil || m.GetTlsContext() != nil
}

// matchesCase reports whether a route distinguishes upper case from lower case.
func matchesCase(m *routev3.RouteMatch) bool {
	return m.GetCaseSensitive() == nil || m.GetCaseSensitive().GetValue()
}
