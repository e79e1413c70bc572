package validate

import (
	"fmt"
	"path"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/xds"
)

var certificateFile = &Rule{
	Code:     "certificate-file",
	Severity: diag.Warning,
	Doc: `A certificate or key is named by an absolute path.

Envoy reads such a file itself, when it takes the resource: nobody can check it
here, a file that is missing there has the resource refused ("Invalid path"), and a
certificate and its key change in two steps. A relative path is taken from the
source tree, beside the file that names it, and goes into the resource.`,
	Messages: []protoreflect.FullName{"envoy.config.core.v3.DataSource"},
	Node: func(p *Pass, n *xds.Node) {
		name := n.Message.(*corev3.DataSource).GetFilename()
		if !path.IsAbs(name) || n.Parent == nil || !strings.HasPrefix(string(n.Parent.Name()), "envoy.extensions.transport_sockets.tls.") {
			return
		}
		p.Report(Finding{
			Path:    n.Path().Field("filename"),
			Message: fmt.Sprintf("%s %s is read by Envoy itself: it is neither checked nor published", n.Field().Name(), name),
			Help:    "put it into the source tree and name it by a relative path, or leave this rule out with --disable certificate-file",
		})
	},
}
