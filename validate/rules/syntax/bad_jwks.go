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

jwt_authn reads local_jwks when the listener is loaded, and refuses it where the set
is no JSON, has no keys, or none of them is good ("Provider 'p' in jwt_authn config has
invalid local jwks: …"). One good key is enough; Envoy skips the others. Good are RSA
keys of 512 bits and more, EC keys of P-256, P-384 and P-521, Ed25519 keys and shared
secrets (oct), each with the fields it needs in base64url, and an alg that fits. A set
in a file of Envoy's machine is not looked at.`,
	Messages: []protoreflect.FullName{"envoy.extensions.filters.http.jwt_authn.v3.JwtProvider"},
	Node: func(p *validate.Pass, n *xds.Node) {
		set, ok := facts.InlineContent(n.Message.(*jwtv3.JwtProvider).GetLocalJwks())
		if !ok || len(set) == 0 {
			return
		}
		if err := jwks.Check(set); err != nil {
			p.Report(validate.Finding{
				Path:    n.Path().Field("local_jwks"),
				Message: fmt.Sprintf("the key set has no key that Envoy can use: %v", err),
				Help:    `write it as in RFC 7517: {"keys": [{"kty": …, …}]}`,
			})
		}
	},
}
