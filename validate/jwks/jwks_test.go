package jwks_test

import (
	"regexp"
	"testing"

	"xdspub/validate/jwks"
)

// Each verdict is that of Envoy about local_jwks of jwt_authn.
func TestCheck(t *testing.T) {
	for _, test := range []struct{ set, want string }{
		{`{"keys":[{"kty":"oct","k":"YWI"}]}`, ""},
		{`{"keys":[{"kty":"oct","k":"YWI="}]}`, ""},
		{`{"keys":[{"kty":"oct","k":" YW I."}]}`, ""},
		{`{"keys":[{"kty":"oct","k":"YWI","kid":1,"alg":1}]}`, ""},
		{`{"keys":[{"kty":"foo"},{"kty":"oct","k":"YWI","alg":"HS256"}]}`, ""},
		{`{"keys":[{"kty":"oct","k":"YWI"}],}`, ""},
		{"{\"keys\":\n[{\"kty\":\"oct\",\"kid\":\"a\nb\\\"\t\x01\",\"k\":\"YW\nI\"}]}", ""},
		{"{\"ke\nys\":[]}", `no "keys"`},
		{`{keys:[{"kty":"oct","k":"YWI"}]}`, ""},
		{`{'keys':[{'kty':'oct','k':'YWI'}]}`, ""},
		{`{keys:[{"kty":"oct","k":"YWI"}]}`, ""},
		{"{\"keys\":[{\"kty\":\"oct\",\"k\":\"Y\nWI\",\"ki\td\":\"a\x00\\\\\x1f\"}]}", ""},
		{"{\"keys\":[{\"kty\":\"oct\",\"k\":\"YWI\",\"kid\":\"\\\n\"}]}", "not a JSON object"},
		{"{\"keys\":[{\"kty\":\"oct\",\"k\":\"!\n!\"}]}", "key 0: k is not valid base64url"},
		{"{\"keys\":[{\"kty\":\"oct\",\"k\":\"YWI\"}]\x01}", "not a JSON object"},
		{`{"a":"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}`, ""},
		{`{"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}`, ""},
		{`{"keys":[{"kty":"EC","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}`, ""},
		{`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`, ""},
		{`{"keys":[{"kty":"RSA","e":"AQAB","n":"wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAwOQ"}]}`, ""},

		{`junk`, "not a JSON object"},
		{`[]`, "not a JSON object"},
		{`{"keys":[],"keys":[]}`, "not a JSON object"},
		{`{}`, `no "keys"`},
		{`{"keys":{}}`, "is not a list"},
		{`{"keys":[]}`, "is empty"},
		{`{"keys":["a"]}`, "key 0: it is not a JSON object"},
		{`{"keys":[{"k":"YWI"}]}`, "key 0: it has no kty"},
		{`{"keys":[{"kty":"rsa"}]}`, `unknown kty "rsa"`},
		{`{"keys":[{"kty":"oct"}]}`, "it has no k"},
		{`{"keys":[{"kty":"oct","k":""}]}`, "k is not valid base64url"},
		{`{"keys":[{"kty":"oct","k":"a+/="}]}`, "k is not valid base64url"},
		{`{"keys":[{"kty":"oct","k":"YWI=="}]}`, "k is not valid base64url"},
		{`{"keys":[{"kty":"oct","k":"YWI","alg":"RS256"}]}`, `alg "RS256" is not allowed for an oct key`},
		{`{"keys":[{"kty":"RSA","e":"AQAB"}]}`, "it has no n"},
		{`{"keys":[{"kty":"RSA","e":"AQAB","n":"AQAB"}]}`, "n is not a valid number for an RSA key"},
		{`{"keys":[{"kty":"RSA","e":"AQ","n":"wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAwOQ"}]}`, "e is not a valid number for an RSA key"},
		{`{"keys":[{"kty":"RSA","alg":"ES256","e":"AQAB","n":"AQAB"}]}`, `alg "ES256" is not allowed for an RSA key`},
		{`{"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI500"}]}`, "not a point on curve P-256"},
		{`{"keys":[{"kty":"EC","alg":"ES384","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}`, "not a point on curve P-384"},
		{`{"keys":[{"kty":"EC","crv":"P-256","alg":"ES384","x":"AA","y":"AA"}]}`, `crv "P-256" and alg "ES384" are not valid for`},
		{`{"keys":[{"kty":"OKP","crv":"X25519","x":"AA"}]}`, `crv "X25519" is not allowed for an OKP key`},
		{`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qY"}]}`, "x has 3 bytes, not 32"},
	} {
		err := jwks.Check([]byte(test.set))
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.set, err)
		case test.want != "" && (err == nil || !regexp.MustCompile(test.want).MatchString(err.Error())):
			t.Errorf("%s: %v, want %q", test.set, err, test.want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, set := range []string{
		`{"keys":[{"kty":"oct","k":"YWI","alg":"HS256"}]}`, `{"a":"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}`,
		`{'keys':[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}],}`,
		`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},{"kty":"RSA","e":"AQAB","n":"wAAAOQ"}]}`,
	} {
		f.Add([]byte(set))
	}
	f.Fuzz(func(_ *testing.T, set []byte) { _ = jwks.Check(set) })
}
