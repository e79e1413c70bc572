package route

import (
	"fmt"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var routeConflict = &validate.Rule{
	Code: "route-conflict",
	Doc: `Two fields of a route or virtual host conflict with each other.

Envoy rejects the route configuration in these cases:

- a virtual host has both routes and a matcher
- a route rewrites the path in two ways ("Specify only one of prefix_rewrite, regex_rewrite or
  path_rewrite_policy")
- a route or redirect with path_match_policy has prefix_rewrite, although no prefix was matched
  ("Cannot use prefix_rewrite with matcher extension")
- a route without path_match_policy has path_rewrite_policy
- a mirror policy or the weighted cluster has both a name and a cluster_header ("Only one of …")
- an upgrade other than CONNECT and CONNECT-UDP has a connect_config`,
	Checks: []diag.Check{
		{Name: "cluster-and-header", Summary: "A mirror policy or a weighted cluster has both a name and a cluster_header."},
		{Name: "connect-config", Summary: "An upgrade other than CONNECT has a connect_config."},
		{Name: "path-policies", Summary: "A rewrite and the way that the path is matched do not fit."},
		{Name: "routes-and-matcher", Summary: "A virtual host has both routes and a matcher."},
		{Name: "two-rewrites", Summary: "A route rewrites the path in two ways."},
	},
	Messages: []protoreflect.FullName{
		"envoy.config.route.v3.Route",
		"envoy.config.route.v3.RouteAction.RequestMirrorPolicy",
		"envoy.config.route.v3.RouteAction.UpgradeConfig",
		"envoy.config.route.v3.VirtualHost",
		"envoy.config.route.v3.WeightedCluster.ClusterWeight",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		conflict := func(check validate.CheckName, path xds.Path, message, help string) {
			p.Report(validate.Finding{Check: check, Path: n.Path().Join(path), Message: message, Help: help})
		}
		switch m := n.Message.(type) {
		case *routev3.Route:
			rewriteConflicts(m, conflict)
		case *routev3.RouteAction_RequestMirrorPolicy:
			if m.GetCluster() != "" && m.GetClusterHeader() != "" {
				conflict("cluster-and-header", "cluster_header", fmt.Sprintf("the mirror policy has both cluster %q and "+
					"cluster_header %q", m.GetCluster(), m.GetClusterHeader()), "keep one of them")
			}
		case *routev3.RouteAction_UpgradeConfig:
			if m.GetConnectConfig() != nil && !isConnect(m.GetUpgradeType()) {
				conflict("connect-config", "connect_config", fmt.Sprintf("upgrade %q can't have a "+
					"connect_config", m.GetUpgradeType()), "remove it: only CONNECT and CONNECT-UDP support it")
			}
		case *routev3.VirtualHost:
			if m.GetMatcher() != nil && len(m.GetRoutes()) > 0 {
				conflict("routes-and-matcher", "matcher", fmt.Sprintf("virtual host %q has both routes "+
					"and a matcher", m.GetName()), "move the routes to the matcher, or remove the matcher")
			}
		case *routev3.WeightedCluster_ClusterWeight:
			if m.GetName() != "" && m.GetClusterHeader() != "" && weighsRoute(n) {
				conflict("cluster-and-header", "cluster_header", fmt.Sprintf("the weighted cluster has both name %q and "+
					"cluster_header %q", m.GetName(), m.GetClusterHeader()), "keep one of them")
			}
		}
	},
}

// rewriteConflicts reports rewrites that exclude each other, and rewrites that do not fit the match of the route.
func rewriteConflicts(m *routev3.Route, conflict func(check validate.CheckName, path xds.Path, message, help string)) {
	action, redirect := m.GetRoute(), m.GetRedirect()
	var rewrites []string
	for _, rewrite := range []struct {
		field string
		set   bool
	}{
		{"prefix_rewrite", action.GetPrefixRewrite() != ""},
		{"regex_rewrite", action.GetRegexRewrite() != nil},
		{"path_rewrite_policy", action.GetPathRewritePolicy() != nil},
		{"path_rewrite", action.GetPathRewrite() != ""},
	} {
		if rewrite.set {
			rewrites = append(rewrites, rewrite.field)
		}
	}
	byPolicy := m.GetMatch().GetPathMatchPolicy() != nil
	switch {
	case len(rewrites) > 1:
		conflict("two-rewrites", xds.Path("route").Field(rewrites[1]), fmt.Sprintf("the route rewrites the path "+
			"in %d ways: %s", len(rewrites), strings.Join(rewrites, ", ")), "keep one of them")
	case byPolicy && action.GetPrefixRewrite() != "":
		conflict("path-policies", "route.prefix_rewrite", "prefix_rewrite needs a prefix match, and the route has "+
			"path_match_policy", "use path_rewrite_policy or regex_rewrite")
	case byPolicy && redirect.GetPrefixRewrite() != "":
		conflict("path-policies", "redirect.prefix_rewrite", "prefix_rewrite needs a prefix match, and the route has "+
			"path_match_policy", "use path_redirect or regex_rewrite")
	case !byPolicy && action.GetPathRewritePolicy() != nil:
		conflict("path-policies", "route.path_rewrite_policy", "path_rewrite_policy needs path_match_policy in "+
			"the same route", "match with path_match_policy, or use prefix_rewrite or regex_rewrite")
	}
}

func isConnect(upgrade string) bool {
	return strings.EqualFold(upgrade, "CONNECT") || strings.EqualFold(upgrade, "CONNECT-UDP")
}
