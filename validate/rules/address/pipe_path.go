package address

import (
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var pipePath = &validate.Rule{
	Code: "pipe-path",
	Doc: `The path of a Unix domain socket is invalid.

A path has 107 bytes at most ("exceeds maximum UNIX domain socket path size of
108") and no NUL in it. One that starts with @ is abstract, no file, and has no
mode ("Cannot set mode for Abstract AF_UNIX sockets").`,
	Messages: []protoreflect.FullName{"envoy.config.core.v3.Pipe"},
	Node: func(p *validate.Pass, n *xds.Node) {
		const most = 107
		if facts.Inside(n, "envoy.config.endpoint.v3.LbEndpoint") && facts.UseOfEndpoints(p.Envoy, n) != facts.EndpointsLiteral {
			return // endpoint-address, or not looked at
		}
		m := n.Message.(*corev3.Pipe)
		abstract := strings.HasPrefix(m.GetPath(), "@")
		switch {
		case len(m.GetPath()) > most:
			p.Report(validate.Finding{
				Path:    n.Path().Field("path"),
				Message: fmt.Sprintf("the path of a Unix domain socket has %d bytes, Envoy takes at most %d", len(m.GetPath()), most),
				Help:    "give a shorter path",
			})
		case !abstract && strings.ContainsRune(m.GetPath(), 0):
			p.Report(validate.Finding{Path: n.Path().Field("path"), Message: "the path of a Unix domain socket has a NUL in it", Help: "only abstract ones, that start with @, can have it"})
		case abstract && m.GetMode() != 0:
			p.Report(validate.Finding{Path: n.Path().Field("mode"), Message: "a mode for an abstract Unix domain socket", Help: "remove it: there is no file that could have it"})
		}
	},
}
