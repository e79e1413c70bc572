package grpc

import (
	"fmt"
	"math"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var grpcRoute = &validate.Rule{
	Code: "grpc-route",
	Doc: `gRPC rejects a route configuration, or ignores one of its routes.

A route needs a match with a prefix, a path or a safe_regex; gRPC rejects other path matchers. A
header matcher needs one of its conditions, since without one gRPC does not assume
present_match, and a prefix, suffix or contains must not be empty. The weights of weighted_clusters
add up to a number from 1 to 4294967295. A retry_policy has a num_retries of 1 or more, and
intervals above 0. A cluster_specifier_plugin is a RouteLookupClusterSpecifier or is_optional
(gRFC A28, A44).

gRPC ignores a route with query_parameters, with cluster_header, or with a plugin that it
does not know: requests then match the routes below it. On redirect, direct_response and
filter_action each call of a client fails (UNAVAILABLE). These findings are warnings.`,
	Checks: []diag.Check{
		{Name: "action", Summary: "gRPC does not support the action: each call that matches fails."},
		{Name: "cluster-weights", Summary: "The weights of the clusters do not add up to a number from 1 to 4294967295."},
		{Name: "header-match", Summary: "A header matcher has no condition that gRPC supports."},
		{Name: "ignored-route", Summary: "gRPC ignores a route."},
		{Name: "path-match", Summary: "A route matches by no path, or by one that gRPC does not support."},
		{Name: "plugin", Summary: "gRPC does not know a cluster specifier plugin."},
		{Name: "retry-on", Summary: "gRPC never retries by this retry_on."},
		{Name: "retry-policy", Summary: "A retry_policy has a number or an interval of 0."},
	},
	Messages: []protoreflect.FullName{
		"envoy.config.route.v3.ClusterSpecifierPlugin",
		"envoy.config.route.v3.RetryPolicy",
		"envoy.config.route.v3.Route",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *routev3.Route:
			checkRoute(p, n.Path(), m)
		case *routev3.RetryPolicy:
			checkRetries(p, n, m)
		case *routev3.ClusterSpecifierPlugin:
			if is := xds.PayloadType(m.GetExtension().GetTypedConfig()); is != lookupType && !m.GetIsOptional() {
				rejectRoutes(p, "plugin", n.Path(), fmt.Sprintf("it does not know the cluster specifier plugin %q, "+
					"which holds %s", m.GetExtension().GetName(), typeText(is)), "remove it, or set is_optional: true")
			}
		}
	},
}

const lookupType protoreflect.FullName = "grpc.lookup.v1.RouteLookupClusterSpecifier"

func rejectRoutes(p *validate.Pass, check validate.CheckName, path xds.Path, what, help string) {
	p.Report(validate.Finding{Check: check, Path: path, Message: "gRPC rejects the route configuration: " + what, Help: help})
}

func checkRoute(p *validate.Pass, path xds.Path, r *routev3.Route) {
	m, at := r.GetMatch(), path.Field("match")
	if m != nil && len(m.GetQueryParameters()) > 0 {
		ignoreRoute(p, "ignored-route", at.Field("query_parameters"), "gRPC ignores the route, because it matches by "+
			"query_parameters", "remove them, or the route")
		return
	}
	switch m.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix, *routev3.RouteMatch_Path, *routev3.RouteMatch_SafeRegex:
	case nil:
		rejectRoutes(p, "path-match", at, "a route matches by no path", `write prefix: "" to match all`)
	default:
		field := fieldOf(m.ProtoReflect(), "path_specifier")
		rejectRoutes(p, "path-match", at.Field(field), fmt.Sprintf("it does not support %s", field), "write a prefix, a path or a safe_regex")
	}
	for i, h := range m.GetHeaders() {
		checkHeader(p, at.Field("headers").Index(i), h)
	}
	checkAction(p, path, r)
}

func ignoreRoute(p *validate.Pass, check validate.CheckName, path xds.Path, what, help string) {
	p.Report(validate.Finding{Check: check, Path: path, Message: what, Help: help, Warning: true})
}

func checkHeader(p *validate.Pass, path xds.Path, h *routev3.HeaderMatcher) {
	switch field := fieldOf(h.ProtoReflect(), "header_match_specifier"); field {
	case "":
		rejectRoutes(p, "header-match", path, fmt.Sprintf("the matcher of the header %q has no condition", h.GetName()), "write present_match: true")
	case "string_match":
		checkString(p, path.Field(field), h.GetStringMatch())
	case "prefix_match", "suffix_match", "contains_match":
		if isEmpty(h, field) {
			rejectRoutes(p, "header-match", path.Field(field), field+" is empty", "write what the header has, or present_match: true")
		}
	}
}

func checkString(p *validate.Pass, path xds.Path, m *matcherv3.StringMatcher) {
	switch field := fieldOf(m.ProtoReflect(), "match_pattern"); field {
	case "":
		rejectRoutes(p, "header-match", path, "string_match has no condition", "write exact, prefix, suffix, contains or safe_regex")
	case "custom":
		rejectRoutes(p, "header-match", path.Field(field), "it does not support custom", "write exact, prefix, suffix, contains or safe_regex")
	case "prefix", "suffix", "contains":
		if isEmpty(m, field) {
			rejectRoutes(p, "header-match", path.Field(field), field+" is empty", "write what the header has")
		}
	}
}

func checkAction(p *validate.Pass, path xds.Path, r *routev3.Route) {
	switch action := fieldOf(r.ProtoReflect(), "action"); action {
	case "route":
		checkClusters(p, path.Field("route"), r.GetRoute())
	case "redirect", "direct_response", "filter_action":
		ignoreRoute(p, "action", path.Field(action), fmt.Sprintf("gRPC does not support %s: each call that matches "+
			"the route fails", action), "write route with a cluster")
	}
}

func checkClusters(p *validate.Pass, path xds.Path, a *routev3.RouteAction) {
	switch field := fieldOf(a.ProtoReflect(), "cluster_specifier"); field {
	case "cluster", "cluster_specifier_plugin":
	case "weighted_clusters":
		var sum uint64
		for _, c := range a.GetWeightedClusters().GetClusters() {
			sum += uint64(c.GetWeight().GetValue())
		}
		if sum == 0 || sum > math.MaxUint32 {
			rejectRoutes(p, "cluster-weights", path.Field(field), fmt.Sprintf("the weights of the clusters "+
				"add up to %d", sum), fmt.Sprintf("make them add up to a number from 1 to %d", uint32(math.MaxUint32)))
		}
	case "":
		ignoreRoute(p, "ignored-route", path, "gRPC ignores the route, because it names no cluster", "write cluster or weighted_clusters")
	default:
		ignoreRoute(p, "ignored-route", path.Field(field), fmt.Sprintf("gRPC ignores the route, because it does "+
			"not support %s", field), "write cluster or weighted_clusters")
	}
}

// retried are the conditions of retry_on that gRPC knows.
var retried = []string{"cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable"}

func checkRetries(p *validate.Pass, n *xds.Node, m *routev3.RetryPolicy) {
	if !facts.Inside(n, "envoy.config.route.v3.VirtualHost.retry_policy", "envoy.config.route.v3.RouteAction.retry_policy") {
		return
	}
	path := n.Path()
	if m.GetNumRetries() != nil && m.GetNumRetries().GetValue() == 0 {
		rejectRoutes(p, "retry-policy", path.Field("num_retries"), "num_retries is 0", "write 1 or more, or remove the retry_policy")
	}
	b := m.GetRetryBackOff()
	if b != nil && b.GetBaseInterval().AsDuration() <= 0 {
		rejectRoutes(p, "retry-policy", path.Field("retry_back_off").Field("base_interval"), "base_interval is not above 0", "write a time such as 0.025s")
	}
	if b.GetMaxInterval() != nil && b.GetMaxInterval().AsDuration() <= 0 {
		rejectRoutes(p, "retry-policy", path.Field("retry_back_off").Field("max_interval"), "max_interval is not above 0", "write a time such as 0.250s")
	}
	known := func(on string) bool { return slices.Contains(retried, strings.TrimSpace(strings.ToLower(on))) }
	if !slices.ContainsFunc(strings.Split(m.GetRetryOn(), ","), known) {
		ignoreRoute(p, "retry-on", path.Field("retry_on"), fmt.Sprintf("gRPC never retries: retry_on %q has no condition "+
			"that it knows", m.GetRetryOn()), "add one of "+strings.Join(retried, ", "))
	}
}
