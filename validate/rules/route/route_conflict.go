package route

import (
	"fmt"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

var routeConflict = &validate.Rule{
	Code: "route-conflict",
	Doc: `Two fields of a route or virtual host conflict with each other.

Envoy refuses the route configuration where a virtual host has routes and a
matcher; a route rewrites the path in two ways ("Specify only one of
prefix_rewrite, regex_rewrite or path_rewrite_policy"); a prefix is rewritten that
no prefix matched ("Cannot use prefix_rewrite with matcher extension"), in a
redirect too; a path is rewritten by a URI template that none matched; a mirror
policy or a weighted cluster names its cluster twice ("Only one of …"); an upgrade
other than CONNECT and CONNECT-UDP has a connect_config.`,
	Messages: []protoreflect.FullName{
		"envoy.config.route.v3.Route",
		"envoy.config.route.v3.RouteAction.RequestMirrorPolicy",
		"envoy.config.route.v3.RouteAction.UpgradeConfig",
		"envoy.config.route.v3.VirtualHost",
		"envoy.config.route.v3.WeightedCluster.ClusterWeight",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		conflict := func(path xds.Path, message, help string) {
			p.Report(validate.Finding{Path: n.Path().Join(path), Message: message, Help: help})
		}
		switch m := n.Message.(type) {
		case *routev3.Route:
			rewriteConflicts(m, conflict)
		case *routev3.RouteAction_RequestMirrorPolicy:
			if m.GetCluster() != "" && m.GetClusterHeader() != "" {
				conflict("cluster_header", fmt.Sprintf("mirror policy has both cluster %q and cluster_header %q", m.GetCluster(), m.GetClusterHeader()), "keep one of them")
			}
		case *routev3.RouteAction_UpgradeConfig:
			if m.GetConnectConfig() != nil && !isConnect(m.GetUpgradeType()) {
				conflict("connect_config", fmt.Sprintf("upgrade %q has a connect_config", m.GetUpgradeType()), "only CONNECT and CONNECT-UDP have one")
			}
		case *routev3.VirtualHost:
			if m.GetMatcher() != nil && len(m.GetRoutes()) > 0 {
				conflict("matcher", fmt.Sprintf("virtual host %q has both routes and a matcher", m.GetName()), "move the routes into the matcher, or remove it")
			}
		case *routev3.WeightedCluster_ClusterWeight:
			if m.GetName() != "" && m.GetClusterHeader() != "" && weighsRoute(n) {
				conflict("cluster_header", fmt.Sprintf("weighted cluster has both name %q and cluster_header %q", m.GetName(), m.GetClusterHeader()), "keep one of them")
			}
		}
	},
}

// rewriteConflicts finds rewrites that exclude each other, or do not fit what
// the route matches.
func rewriteConflicts(m *routev3.Route, conflict func(path xds.Path, message, help string)) {
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
		conflict(xds.Path("route").Field(rewrites[1]), fmt.Sprintf("the path is rewritten in %d ways: %s", len(rewrites), strings.Join(rewrites, ", ")), "keep one of them")
	case byPolicy && action.GetPrefixRewrite() != "":
		conflict("route.prefix_rewrite", "prefix_rewrite in a route with path_match_policy, which matches no prefix", "use path_rewrite_policy or regex_rewrite")
	case byPolicy && redirect.GetPrefixRewrite() != "":
		conflict("redirect.prefix_rewrite", "prefix_rewrite in a route with path_match_policy, which matches no prefix", "use path_redirect or regex_rewrite")
	case !byPolicy && action.GetPathRewritePolicy() != nil:
		conflict("route.path_rewrite_policy", "path_rewrite_policy in a route without path_match_policy", "match with path_match_policy, or use prefix_rewrite or regex_rewrite")
	}
}

func isConnect(upgrade string) bool {
	return strings.EqualFold(upgrade, "CONNECT") || strings.EqualFold(upgrade, "CONNECT-UDP")
}
