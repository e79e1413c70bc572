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

The operating system limits the path of a Unix domain socket to 107 bytes ("exceeds maximum
UNIX domain socket path size of 108"), without a NUL character. A path that begins with @
is an abstract socket: no file belongs to it, so Envoy rejects a mode ("Cannot set mode for
Abstract AF_UNIX sockets").`,
	Messages: []protoreflect.FullName{"envoy.config.core.v3.Pipe"},
	Node: func(p *validate.Pass, n *xds.Node) {
		const most = 107
		if facts.Inside(n, "envoy.config.endpoint.v3.LbEndpoint") && facts.UseOfEndpoints(p.Envoy, n) != facts.EndpointsLiteral {
			return // reported by endpoint-address, or Envoy ignores the pipe
		}
		m := n.Message.(*corev3.Pipe)
		abstract := strings.HasPrefix(m.GetPath(), "@")
		switch {
		case len(m.GetPath()) > most:
			p.Report(validate.Finding{
				Path:    n.Path().Field("path"),
				Message: fmt.Sprintf("the path of a Unix domain socket has %d bytes, the limit is %d", len(m.GetPath()), most),
				Help:    "write a shorter path",
			})
		case !abstract && strings.ContainsRune(m.GetPath(), 0):
			p.Report(validate.Finding{Path: n.Path().Field("path"), Message: "the path of a Unix domain socket contains a " +
				"NUL character", Help: "remove it: only abstract paths, which begin with @, may contain NUL"})
		case abstract && m.GetMode() != 0:
			p.Report(validate.Finding{Path: n.Path().Field("mode"), Message: "an abstract Unix domain socket " +
				"can't have a mode", Help: "remove the mode: no file belongs to an abstract socket"})
		}
	},
}
