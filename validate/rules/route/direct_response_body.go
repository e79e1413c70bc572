package route

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

var directResponseBody = &validate.Rule{
	Code: "direct-response-body",
	Doc: `A direct response body exceeds the limit of its route configuration.

The limit is max_direct_response_body_size_bytes of the route configuration: 4096 bytes by
default, 0 for no limit. Envoy rejects a longer body ("response body size is 4097 bytes; maximum
is 4096"). This rule does not read bodies from files.`,
	Messages: []protoreflect.FullName{"envoy.config.route.v3.DirectResponseAction"},
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		var size int
		field := "inline_string"
		switch body := n.Message.(*routev3.DirectResponseAction).GetBody().GetSpecifier().(type) {
		case *corev3.DataSource_InlineString:
			size = len(body.InlineString)
		case *corev3.DataSource_InlineBytes:
			size, field = len(body.InlineBytes), "inline_bytes"
		}
		if limit := maxDirectResponse(p, n); limit > 0 && size > limit {
			p.Report(validate.Finding{
				Path:    n.Path().Field("body").Field(field),
				Message: fmt.Sprintf("the body has %d bytes, the limit is %d", size, limit),
				Help:    "raise max_direct_response_body_size_bytes of the route configuration, or shorten the body",
			})
		}
	},
}

// maxDirectResponse returns the largest size of a direct response body, in bytes, for the node. The route
// configuration around the node sets it; for a virtual host of VHDS, the route configuration that it belongs to.
func maxDirectResponse(p *validate.LookupPass, n *xds.Node) int {
	routes, _ := xds.Enclosing[*routev3.RouteConfiguration](n)
	if p.Resource.Type == xds.VirtualHost {
		if r := p.Snapshot.Lookup(xds.RouteConfiguration, xds.RoutesOfHost(p.Resource.Name)); r != nil {
			routes = r.Message().(*routev3.RouteConfiguration)
		}
	}
	if limit := routes.GetMaxDirectResponseBodySizeBytes(); limit != nil {
		return int(limit.GetValue())
	}
	return 4096
}
