package syntax

import (
	"fmt"
	"regexp"
	"strconv"

	jwksv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/jwks/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	oauth2v3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/oauth2/v3"
	redirectv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/custom_response/redirect_policy/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

var malformedURI = &validate.Rule{
	Code: "malformed-uri",
	Doc: `A URI is invalid.

Envoy needs an absolute URI with scheme and host in remote_jwks of jwt_authn ("Provider 'p' has an
invalid URI"), in the authorization_endpoint of oauth2 ("invalid authorization endpoint URL") and
in the redirect of custom_response ("Invalid uri specified for redirection for custom response").
A host consists of letters, digits, dots and hyphens, without underscores; the other characters
of the URI must be visible ASCII.

Envoy does not check the URIs of ext_authz, of oauth2's token endpoint and of remote Wasm code.`,
	Messages: []protoreflect.FullName{
		"envoy.extensions.filters.common.jwks.v3.RemoteJwks",
		"envoy.extensions.filters.http.jwt_authn.v3.RemoteJwks",
		"envoy.extensions.filters.http.oauth2.v3.OAuth2Config",
		"envoy.extensions.http.custom_response.redirect_policy.v3.RedirectPolicy",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *jwksv3.RemoteJwks:
			checkURI(p, n, "http_uri.uri", m.GetHttpUri().GetUri())
		case *jwtv3.RemoteJwks:
			checkURI(p, n, "http_uri.uri", m.GetHttpUri().GetUri())
		case *oauth2v3.OAuth2Config:
			checkURI(p, n, "authorization_endpoint", m.GetAuthorizationEndpoint())
		case *redirectv3.RedirectPolicy:
			checkURI(p, n, "uri", m.GetUri())
		}
	},
}

func checkURI(p *validate.Pass, n *xds.Node, path xds.Path, uri string) {
	if uri == "" || isAbsoluteURI(uri) {
		return // field-constraint reports an empty URI
	}
	p.Report(validate.Finding{
		Path:    n.Path().Join(path),
		Message: fmt.Sprintf("%q is not a valid absolute URI", uri),
		Help:    "write a URI such as https://host.example:443/path; the host may have letters, digits, dots and hyphens",
	})
}

// absoluteURI matches the URIs that Envoy's parser accepts: scheme, user, host, port and the rest.
var absoluteURI = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://` +
	`(?:[A-Za-z0-9\-_.!~*'();:&=+$,%]*@)?` +
	`(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])` +
	`(?::([0-9]+))?` +
	`(?:[/?][\x21-\x7e]*)?$`)

func isAbsoluteURI(uri string) bool {
	parts := absoluteURI.FindStringSubmatch(uri)
	if parts == nil {
		return false
	}
	if parts[1] == "" {
		return true
	}
	_, err := strconv.ParseUint(parts[1], 10, 16)
	return err == nil
}
