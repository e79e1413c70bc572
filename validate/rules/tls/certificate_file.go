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

Envoy reads such a file or variable itself, when it takes the resource: nobody can
check it here, and where it is missing there the resource is refused ("Invalid
path", "Failed to load incomplete certificate"). A certificate and its key change
in two steps in files, and not at all in the environment. A relative path is taken
from the source tree, beside the file that names it, and goes into the resource.`,
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
			Message: fmt.Sprintf("%s %s is read by Envoy itself: it is neither checked nor published", n.Field().Name(), name),
			Help:    "put it into the source tree and name it by a relative path, or leave this rule out with --disable certificate-file",
		})
	},
}
