package field

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var ignoredWatch = &validate.Rule{
	Code:     "ignored-watch",
	Severity: diag.Warning,
	Doc: `A watched_directory has no effect.

Envoy reads the users of basic_auth, the default_source_code of Lua, local_jwks and the body of a
local reply once, when it loads the resource, and ignores their watched_directory
(envoyproxy/envoy#36462): a file that is renamed into the directory is not read. Envoy does watch
for the body of a direct response. Change the resource itself instead: in a source tree, name the
file by a relative path, and xdspub puts the content into the resource.`,
	Messages: []protoreflect.FullName{"envoy.config.core.v3.DataSource"},
	Node: func(p *validate.Pass, n *xds.Node) {
		if n.Message.(*corev3.DataSource).GetWatchedDirectory() != nil && slices.Contains(readOnce, n.Field()) {
			p.Report(validate.Finding{
				Path:    n.Path().Field("watched_directory"),
				Message: "Envoy ignores this watched_directory, and reads the file only when it loads the resource",
				Help:    "remove it, and name the file by a relative path in a source tree",
			})
		}
	},
}

// readOnce are the fields whose watched_directory Envoy ignores.
var readOnce = []protoreflect.FullName{
	"envoy.extensions.filters.http.basic_auth.v3.BasicAuth.users",
	"envoy.extensions.filters.http.jwt_authn.v3.JwtProvider.local_jwks",
	"envoy.extensions.filters.http.lua.v3.Lua.default_source_code",
	"envoy.extensions.filters.network.http_connection_manager.v3.ResponseMapper.body",
}
