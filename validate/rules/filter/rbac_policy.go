package filter

import (
	"fmt"

	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	upstreamipv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/rbac/matchers/upstream_ip_port/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

const (
	httpRBAC    protoreflect.FullName = "envoy.extensions.filters.http.rbac.v3.RBAC"
	networkRBAC protoreflect.FullName = "envoy.extensions.filters.network.rbac.v3.RBAC"
)

var rbacPolicy = &validate.Rule{
	Code: "rbac-policy",
	Doc: `An RBAC policy has a rule that is invalid or unsupported.

Envoy rejects a destination_port_range that is empty or goes beyond the valid ports ("range
start 10 cannot be greater or equal than range end 5"; the end is excluded), and an upstream
matcher without address and port. The network filter sees no HTTP headers ("Found header(…)
rule, not supported by RBAC network filter"), not even in nested and shadow rules.

If the filter also has a matcher, Envoy does not check the port ranges of its rules.`,
	Messages: []protoreflect.FullName{
		"envoy.config.rbac.v3.Permission",
		"envoy.config.rbac.v3.Principal",
		"envoy.extensions.rbac.matchers.upstream_ip_port.v3.UpstreamIpPortMatcher",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		impossible := func(path xds.Path, message, help string) {
			p.Report(validate.Finding{Path: n.Path().Join(path), Message: message, Help: help})
		}
		switch m := n.Message.(type) {
		case *rbacv3.Permission:
			if m.GetHeader() != nil && facts.Enclosing(n, networkRBAC) != nil {
				impossible("header", noHeaders, "match a property of the connection, or use the RBAC HTTP filter")
			}
			if r := m.GetDestinationPortRange(); r != nil && (r.GetStart() < 0 || r.GetEnd() > 1<<16 || r.GetStart() >= r.GetEnd()) && !overruled(n) {
				impossible("destination_port_range", fmt.Sprintf("[%d, %d) is not a "+
					"range of ports", r.GetStart(), r.GetEnd()), "write a start of at least 0, and an end above it and at most "+
					"65536; the end is excluded")
			}
		case *rbacv3.Principal:
			if m.GetHeader() != nil && facts.Enclosing(n, networkRBAC) != nil {
				impossible("header", noHeaders, "match a property of the connection, or use the RBAC HTTP filter")
			}
		case *upstreamipv3.UpstreamIpPortMatcher:
			if m.GetUpstreamIp() == nil && m.GetUpstreamPortRange() == nil {
				impossible("", "the matcher has neither an address nor a port", "set upstream_ip or upstream_port_range")
			}
		}
	},
}

const noHeaders = "the RBAC network filter can't match headers"

// overruled reports whether Envoy ignores the RBAC rules at n, because a matcher beside them is set.
func overruled(n *xds.Node) bool {
	filter := facts.Enclosing(n, httpRBAC)
	if filter == nil {
		filter = facts.Enclosing(n, networkRBAC)
	}
	if filter == nil {
		return false
	}
	m := filter.Message.(interface {
		GetMatcher() *xdsmatcherv3.Matcher
		GetShadowMatcher() *xdsmatcherv3.Matcher
	})
	return facts.Inside(n, filter.Name()+".rules") && m.GetMatcher() != nil ||
		facts.Inside(n, filter.Name()+".shadow_rules") && m.GetShadowMatcher() != nil
}
