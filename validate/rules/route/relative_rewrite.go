package route

import (
	"fmt"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var relativeRewrite = &validate.Rule{
	Code:     "relative-rewrite",
	Severity: diag.Warning,
	Doc: `A route rewrites the path to one that does not begin with a slash.

Envoy accepts it and sends the path as written; most upstreams answer with 400. A redirect adds
the slash itself.`,
	Messages: []protoreflect.FullName{"envoy.config.route.v3.RouteAction"},
	Node: func(p *validate.Pass, n *xds.Node) {
		m := n.Message.(*routev3.RouteAction)
		check := func(field, path string) {
			// The value of a command may begin with the slash.
			if path != "" && !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "%") {
				p.Report(validate.Finding{
					Path:    n.Path().Field(field),
					Message: fmt.Sprintf("%s %q produces a path that does not begin with a slash", field, path),
					Help:    fmt.Sprintf("write %q", "/"+path),
				})
			}
		}
		check("prefix_rewrite", m.GetPrefixRewrite())
		check("path_rewrite", m.GetPathRewrite())
	},
}
