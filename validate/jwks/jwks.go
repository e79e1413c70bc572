// Package jwks judges a JSON Web Key Set (RFC 7517) as Envoy's jwt_authn does when Envoy loads the set. Envoy accepts
// a set if at least one of its keys is valid, and skips the other keys.
//
//	if err := jwks.Check(text); err != nil {
//		// Envoy refuses the set
//	}
//
// Errors quote only the values of kty, alg and crv. Other values may be secret.
package jwks

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// lax matches forms that Envoy's parser accepts and JSON forbids: a comma before a closing bracket, single quotes,
// and names without quotes. Check accepts a set with such a form.
var lax = regexp.MustCompile(`,\s*[}\]]|'|[{,]\s*[A-Za-z_$][0-9A-Za-z_$]*\s*:`)

// Check returns the reason why Envoy refuses a set, or nil.
func Check(text []byte) error {
	var set structpb.Struct
	// Envoy also reads the set as a Struct, which refuses repeated names.
	if protojson.Unmarshal(withoutControls(text), &set) != nil {
		if lax.Match(text) {
			return nil
		}
		return errors.New("it is not a JSON object")
	}
	field, ok := set.GetFields()["keys"]
	if !ok {
		if hasCertificates(&set) {
			return nil
		}
		return errors.New(`it has no "keys"`)
	}
	list, ok := field.GetKind().(*structpb.Value_ListValue)
	if !ok {
		return errors.New(`"keys" is not a list`)
	}
	first := errors.New(`"keys" is empty`)
	for i, v := range list.ListValue.GetValues() {
		err := checkKey(v.GetStructValue())
		if err == nil {
			return nil
		}
		if i == 0 {
			first = fmt.Errorf("key 0: %w", err)
		}
	}
	return first
}

// withoutControls escapes the control characters in strings, such as the line breaks of folded YAML. Envoy's parser
// accepts them, but JSON does not.
func withoutControls(text []byte) []byte {
	if !bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
		return text
	}
	var out []byte
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\' && i+1 < len(text):
			out = append(out, c)
			i++
			out = append(out, text[i])
		case inString && c < ' ':
			out = fmt.Appendf(out, `\u%04x`, c)
		default:
			if c == '"' {
				inString = !inString
			}
			out = append(out, c)
		}
	}
	return out
}

// hasCertificates reports whether the set maps names to PEM certificates. Envoy also reads this form of a set.
// Check does not judge the certificates.
func hasCertificates(set *structpb.Struct) bool {
	for _, v := range set.GetFields() {
		if strings.Contains(v.GetStringValue(), "-----BEGIN CERTIFICATE-----") {
			return true
		}
	}
	return false
}

// curve is an elliptic curve of EC keys.
type curve struct {
	name, algorithm string
	curve           ecdh.Curve
	size            int // the length of a coordinate, in bytes
}

var curves = []curve{
	{"P-256", "ES256", ecdh.P256(), 32},
	{"P-384", "ES384", ecdh.P384(), 48},
	{"P-521", "ES512", ecdh.P521(), 66},
}

func checkKey(key *structpb.Struct) error {
	if key == nil {
		return errors.New("it is not a JSON object")
	}
	algorithm := text(key, "alg")
	switch kind := text(key, "kty"); kind {
	case "":
		return errors.New("it has no kty")
	case "RSA":
		return checkRSA(key, algorithm)
	case "EC":
		return checkEC(key, algorithm)
	case "oct":
		if algorithm != "" && !strings.HasPrefix(algorithm, "HS") {
			return fmt.Errorf("alg %q is not allowed for an oct key", algorithm)
		}
		_, err := decoded(key, "k")
		return err
	case "OKP":
		return checkOKP(key, algorithm)
	default:
		return fmt.Errorf("unknown kty %q", kind)
	}
}

// The lengths of the modulus and the exponent, in bits, that Envoy's library accepts. Both numbers must be odd.
const (
	minModulus  = 512
	maxModulus  = 16384
	maxExponent = 32
)

func checkRSA(key *structpb.Struct, algorithm string) error {
	if algorithm != "" && !strings.HasPrefix(algorithm, "RS") && !strings.HasPrefix(algorithm, "PS") {
		return fmt.Errorf("alg %q is not allowed for an RSA key", algorithm)
	}
	for _, part := range []struct {
		field    string
		min, max int
	}{{"n", minModulus, maxModulus}, {"e", 2, maxExponent}} {
		b, err := decoded(key, part.field)
		if err != nil {
			return err
		}
		if v := new(big.Int).SetBytes(b); v.BitLen() < part.min || v.BitLen() > part.max || v.Bit(0) == 0 {
			return fmt.Errorf("%s is not a valid number for an RSA key", part.field)
		}
	}
	return nil
}

func checkEC(key *structpb.Struct, algorithm string) error {
	name := text(key, "crv")
	i := slices.IndexFunc(curves, func(c curve) bool {
		return (name == "" || name == c.name) && (algorithm == "" || algorithm == c.algorithm)
	})
	if i < 0 {
		return fmt.Errorf("crv %q and alg %q are not valid for an EC key", name, algorithm)
	}
	c := curves[i]
	point := []byte{4} // the point is not compressed
	for _, field := range []string{"x", "y"} {
		b, err := decoded(key, field)
		if err != nil {
			return err
		}
		coordinate := new(big.Int).SetBytes(b)
		if coordinate.BitLen() > 8*c.size {
			return fmt.Errorf("%s is too long for curve %s", field, c.name)
		}
		point = append(point, coordinate.FillBytes(make([]byte, c.size))...)
	}
	if _, err := c.curve.NewPublicKey(point); err != nil {
		return fmt.Errorf("x and y are not a point on curve %s", c.name)
	}
	return nil
}

func checkOKP(key *structpb.Struct, algorithm string) error {
	if algorithm != "" && algorithm != "EdDSA" {
		return fmt.Errorf("alg %q is not allowed for an OKP key", algorithm)
	}
	if name := text(key, "crv"); name != "Ed25519" {
		return fmt.Errorf("crv %q is not allowed for an OKP key", name)
	}
	x, err := decoded(key, "x")
	if err == nil && len(x) != ed25519.PublicKeySize {
		return fmt.Errorf("x has %d bytes, not %d", len(x), ed25519.PublicKeySize)
	}
	return err
}

// text returns the value of a text field of a key. It returns "" if the field is absent or not text.
func text(key *structpb.Struct, field string) string {
	return key.GetFields()[field].GetStringValue()
}

// decoded decodes a field in base64url, with or without padding. As in Envoy, it skips spaces, and a dot is
// padding.
func decoded(key *structpb.Struct, field string) ([]byte, error) {
	value, ok := key.GetFields()[field].GetKind().(*structpb.Value_StringValue)
	if !ok {
		return nil, fmt.Errorf("it has no %s", field)
	}
	digits := strings.ReplaceAll(strings.Join(strings.Fields(value.StringValue), ""), ".", "=")
	encoding := base64.RawURLEncoding
	if strings.HasSuffix(digits, "=") {
		encoding = base64.URLEncoding
	}
	b, err := encoding.DecodeString(digits)
	if err != nil || len(b) == 0 {
		return nil, fmt.Errorf("%s is not valid base64url", field)
	}
	return b, nil
}
