package syntax

import (
	"fmt"

	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/validate/jwks"
	"xdspub/xds"
)

var badJWKS = &validate.Rule{
	Code: "bad-jwks",
	Doc: `A JSON Web Key Set has no valid key.

jwt_authn reads local_jwks when the listener is loaded. Envoy rejects a set that is not JSON, has
no keys, or has no valid key ("Provider 'p' in jwt_authn config has invalid local jwks: …"). One
valid key is enough; Envoy skips the others. Valid are RSA keys of at least 512 bits, EC keys on
P-256, P-384 and P-521, Ed25519 keys and shared secrets (oct), with their required fields in
base64url and a matching alg. This rule does not read files on Envoy's machine.`,
	Messages: []protoreflect.FullName{"envoy.extensions.filters.http.jwt_authn.v3.JwtProvider"},
	Node: func(p *validate.Pass, n *xds.Node) {
		set, ok := facts.InlineContent(n.Message.(*jwtv3.JwtProvider).GetLocalJwks())
		if !ok || len(set) == 0 {
			return
		}
		if err := jwks.Check(set); err != nil {
			p.Report(validate.Finding{
				Path:    n.Path().Field("local_jwks"),
				Message: fmt.Sprintf("the key set has no valid key: %v", err),
				Help:    `write a key set as in RFC 7517: {"keys": [{"kty": …, …}]}`,
			})
		}
	},
}
