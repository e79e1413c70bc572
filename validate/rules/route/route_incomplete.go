package route

import (
	"fmt"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/router/cluster_specifiers/lua/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var routeIncomplete = &validate.Rule{
	Code: "route-incomplete",
	Doc: `A required field of a route is missing.

Envoy rejects a mirror policy and a weighted cluster without a cluster ("Exactly one of cluster
or cluster_header …", "At least one of name or cluster_header need to be specified"), a virtual
cluster without headers ("virtual clusters must define 'headers'"), an empty
cluster_specifier_plugin ("Unknown cluster specifier plugin name:  is used in the route"), a Lua
script of such a plugin without the function envoy_on_route, and an RDS without a config source
unless its route_config_name is an xdstp:// URL ("An RDS config must have either a
'config_source' or an xDS-TP based 'route_config_name'").`,
	Checks: []diag.Check{
		{Name: "lua-function", Summary: "A Lua script has no function envoy_on_route."},
		{Name: "mirror-cluster", Summary: "A mirror policy has no cluster."},
		{Name: "plugin-name", Summary: "cluster_specifier_plugin is empty."},
		{Name: "rds-source", Summary: "An RDS has no config_source."},
		{Name: "virtual-cluster-headers", Summary: "A virtual cluster has no headers."},
		{Name: "weighted-cluster-name", Summary: "A weighted cluster has no name."},
	},
	Messages: []protoreflect.FullName{
		"envoy.config.route.v3.RouteAction",
		"envoy.config.route.v3.RouteAction.RequestMirrorPolicy",
		"envoy.config.route.v3.VirtualCluster",
		"envoy.config.route.v3.WeightedCluster.ClusterWeight",
		"envoy.extensions.filters.network.http_connection_manager.v3.Rds",
		"envoy.extensions.router.cluster_specifiers.lua.v3.LuaConfig",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		missing := func(check validate.CheckName, message, help string) {
			p.Report(validate.Finding{Check: check, Path: n.Path(), Message: message, Help: help})
		}
		switch m := n.Message.(type) {
		case *routev3.RouteAction:
			if plugin, ok := m.GetClusterSpecifier().(*routev3.RouteAction_ClusterSpecifierPlugin); ok && plugin.ClusterSpecifierPlugin == "" {
				missing("plugin-name", "cluster_specifier_plugin is empty", "write the name of one of the route configuration's cluster_specifier_plugins")
			}
		case *routev3.RouteAction_RequestMirrorPolicy:
			if m.GetCluster() == "" && m.GetClusterHeader() == "" {
				missing("mirror-cluster", "the mirror policy has no cluster", "set cluster or cluster_header")
			}
		case *routev3.VirtualCluster:
			if len(m.GetHeaders()) == 0 {
				missing("virtual-cluster-headers", fmt.Sprintf("virtual cluster %q "+
					"has no headers", m.GetName()), "add at least one header, such as :path or :method")
			}
		case *routev3.WeightedCluster_ClusterWeight:
			if m.GetName() == "" && m.GetClusterHeader() == "" && weighsRoute(n) {
				missing("weighted-cluster-name", "the weighted cluster has no name", "set name or cluster_header")
			}
		case *luav3.LuaConfig:
			if script := m.GetSourceCode().GetInlineString(); script != "" && !strings.Contains(script, "envoy_on_route") {
				missing("lua-function", "the script has no function "+
					"envoy_on_route", "define function envoy_on_route(route_handle) that returns the name of a cluster")
			}
		case *hcmv3.Rds:
			if m.GetConfigSource() == nil && !strings.HasPrefix(m.GetRouteConfigName(), "xdstp:") {
				missing("rds-source", fmt.Sprintf("rds %q has no config_source", m.GetRouteConfigName()), "set config_source; "+
					"{ads: {}} reads a route configuration of this tree")
			}
		}
	},
}
