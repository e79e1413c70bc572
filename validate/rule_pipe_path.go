package validate

import (
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

// maxPipePath is the room for a path in the address of a Unix domain socket, with
// the zero byte at its end.
const maxPipePath = 108

var pipePath = &Rule{
	Code: "pipe-path",
	Doc: `A pipe's path is none that a socket can have.

Envoy refuses a path of 108 bytes or more ("exceeds maximum UNIX domain socket path
size of 108"), a path with a zero byte in it, and a mode beside an abstract name,
which begins with @ ("Cannot set mode for Abstract AF_UNIX sockets"): in listeners,
in endpoints, wherever an address stands.`,
	Messages: []protoreflect.FullName{"envoy.config.core.v3.Pipe"},
	Node: func(p *Pass, n *xds.Node) {
		pipe := n.Message.(*corev3.Pipe)
		path := pipe.GetPath()
		abstract := strings.HasPrefix(path, "@")
		switch {
		case len(path) >= maxPipePath:
			p.Report(Finding{
				Path:    n.Path().Field("path"),
				Message: fmt.Sprintf("path of %d bytes, the path of a socket has %d at most", len(path), maxPipePath-1),
				Help:    "choose a shorter path",
			})
		case !abstract && strings.Contains(path, "\x00"):
			p.Report(Finding{
				Path:    n.Path().Field("path"),
				Message: fmt.Sprintf("path %q has a zero byte in it", path),
				Help:    "remove it; the name of an abstract socket begins with @",
			})
		case abstract && pipe.GetMode() != 0:
			p.Report(Finding{
				Path:    n.Path().Field("mode"),
				Message: fmt.Sprintf("abstract socket %q has no file that could have a mode", path),
				Help:    "remove the mode",
			})
		}
	},
}
