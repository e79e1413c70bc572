package tls

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var certificateFile = &validate.Rule{
	Code:     "certificate-file",
	Severity: diag.Warning,
	Doc: `A certificate or key comes from an absolute path or an environment variable.

Envoy reads such a file or variable itself when it loads the resource. xdspub can't check it, and
if it is missing Envoy rejects the resource ("Invalid path", "Failed to load incomplete
certificate"). In files, a certificate and its key change in two steps; in the environment they
never change. With a relative path xdspub reads the file from the source tree and inlines it.`,
	Messages: []protoreflect.FullName{"envoy.config.core.v3.DataSource"},
	Node: func(p *validate.Pass, n *xds.Node) {
		if n.Parent == nil || !strings.HasPrefix(string(n.Parent.Name()), "envoy.extensions.transport_sockets.tls.") {
			return
		}
		field, name := "filename", n.Message.(*corev3.DataSource).GetFilename()
		if variable := n.Message.(*corev3.DataSource).GetEnvironmentVariable(); variable != "" {
			field, name = "environment_variable", fmt.Sprintf("in the variable %q", variable)
		} else if !path.IsAbs(name) {
			return
		} else {
			name = strconv.Quote(name)
		}
		p.Report(validate.Finding{
			Path:    n.Path().Field(field),
			Message: fmt.Sprintf("Envoy itself reads %s %s: xdspub neither checks nor publishes it", n.Field().Name(), name),
			Help:    "put it into the source tree and write a relative path; if you mean it, use --disable certificate-file",
		})
	},
}
