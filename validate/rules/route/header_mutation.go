package route

import (
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var headerMutation = &validate.Rule{
	Code: "header-mutation",
	Doc: `A header can't be added, removed or copied.

Envoy protects the header host, in any case, and headers that begin with a colon (:path,
:authority, :status). It rejects adding them (":-prefixed or host headers may not be modified"),
removing them ("… may not be removed") and copying them for an internal redirect. Change them
with host_rewrite_literal, prefix_rewrite or a direct response. The header mutations of filters
may remove them.

Envoy also rejects a header with both append and append_action, unless the action is the
default ("Both append and append_action are set and it's not allowed").`,
	Messages: []protoreflect.FullName{
		"envoy.config.core.v3.HeaderValueOption",
		"envoy.config.core.v3.HealthCheck.HttpHealthCheck",
		"envoy.config.route.v3.InternalRedirectPolicy",
		"envoy.config.route.v3.Route",
		"envoy.config.route.v3.RouteConfiguration",
		"envoy.config.route.v3.VirtualHost",
		"envoy.config.route.v3.WeightedCluster.ClusterWeight",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *corev3.HeaderValueOption:
			checkAddedHeader(p, n, m)
		case *routev3.InternalRedirectPolicy:
			checkHeaderNames(p, n, "response_headers_to_copy", m.GetResponseHeadersToCopy(), "copied for an internal redirect")
		default:
			checkRemovedHeaders(p, n, m)
		}
	},
}

func checkAddedHeader(p *validate.Pass, n *xds.Node, m *corev3.HeaderValueOption) {
	switch {
	case !isProtectedHeader(m.GetHeader().GetKey()) && (m.GetAppend() == nil || m.GetAppendAction() == corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD):
	case facts.IsUnread(n) || takesAnyHeader(n):
	case isProtectedHeader(m.GetHeader().GetKey()):
		p.Report(validate.Finding{
			Path:    n.Path().Field("header").Field("key"),
			Message: fmt.Sprintf("header %q can't be added", m.GetHeader().GetKey()),
			Help:    protectedHelp,
		})
	default:
		p.Report(validate.Finding{
			Path:    n.Path().Field("append_action"),
			Message: fmt.Sprintf("header %q has both append and append_action", m.GetHeader().GetKey()),
			Help:    "remove append, which is deprecated",
		})
	}
}

func checkRemovedHeaders(p *validate.Pass, n *xds.Node, m proto.Message) {
	if m, ok := m.(interface{ GetRequestHeadersToRemove() []string }); ok {
		checkHeaderNames(p, n, "request_headers_to_remove", m.GetRequestHeadersToRemove(), "removed")
	}
	if m, ok := m.(interface{ GetResponseHeadersToRemove() []string }); ok {
		checkHeaderNames(p, n, "response_headers_to_remove", m.GetResponseHeadersToRemove(), "removed")
	}
}

func checkHeaderNames(p *validate.Pass, n *xds.Node, field string, names []string, done string) {
	for i, name := range names {
		if isProtectedHeader(name) && !facts.IsUnread(n) && !takesAnyHeader(n) {
			p.Report(validate.Finding{
				Path:    n.Path().Field(field).Index(i),
				Message: fmt.Sprintf("header %q can't be %s", name, done),
				Help:    protectedHelp,
			})
		}
	}
}

const protectedHelp = "change the host with host_rewrite_literal, the path with prefix_rewrite or regex_rewrite; other headers " +
	"that begin with a colon can't be changed"

func isProtectedHeader(name string) bool {
	return strings.HasPrefix(name, ":") || strings.EqualFold(name, "host")
}

// takesAnyHeader reports whether the node is in a message in which Envoy does not check the names of headers.
func takesAnyHeader(n *xds.Node) bool {
	return facts.Inside(n,
		"envoy.config.core.v3.HttpService.request_headers_to_add",
		"envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaFilterConfig",
		"envoy.extensions.filters.network.dubbo_proxy.v3.RouteAction.weighted_clusters",
		"envoy.extensions.filters.network.generic_proxy.action.v3.RouteAction.weighted_clusters",
	)
}
