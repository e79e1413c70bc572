package tls

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/boring"
	"xdspub/xds"
)

var peerVerification = validationRule(&validate.Rule{
	Code:     "peer-verification",
	Severity: diag.Error,
	Doc: `TLS peer verification has missing, invalid or conflicting settings.

Envoy refuses names without a CA that vouches for them ("SAN-based verification of
peer certificates without trusted CA is insecure and not allowed"), a crl, an
allow_expired_certificate or an auto_sni_san_validation without a trusted CA, a
QUIC listener that requires client certificates without one, hashes that are no
SHA-256 (64 hexadecimal digits, or 95 characters with colons, for
verify_certificate_hash; 44 of base64 for verify_certificate_spki), an OTHER_NAME
matcher without an object identifier, and a validator that it does not have. What
stands in a secret and in a combined_validation_context is judged together.

Three things are taken, and warned of: a validation context in a listener without
require_client_certificate lets clients without a certificate in (Envoy counts it
as deprecated); require_client_certificate without anything to verify by lets every
certificate in.`,
	Messages: []protoreflect.FullName{tlsDownstream, tlsUpstream},
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		c, ok := tlsContextAt(n)
		if !ok {
			return
		}
		v, known := peersOf(p, c)
		if known && v.GetTrustedCa() == nil {
			checkPeers(&p.Pass, c, v)
		}
		if c.isServer() {
			checkRequired(&p.Pass, c, v, known)
		}
	},
}, checkValidation)

// checkPeers judges what needs a trusted CA where there is none.
func checkPeers(p *validate.Pass, c tlsContext, v peers) {
	const help = "set trusted_ca"
	if c.up.GetAutoSniSanValidation() && !isCustom(v.CertificateValidationContext) {
		p.Report(validate.Finding{Path: c.node.Path().Field("auto_sni_san_validation"), Message: "auto_sni_san_validation without a trusted_ca", Help: help + " in common_tls_context.validation_context"})
	}
	if v.GetCustomValidatorConfig() != nil {
		return // by whatever name, Envoy leaves it to the validator
	}
	const alone = "names are verified without a trusted_ca that vouches for them"
	switch {
	case len(v.GetMatchTypedSubjectAltNames()) > 0:
		v.report(p, "match_typed_subject_alt_names", validate.Finding{Message: alone, Help: help})
	case len(v.GetMatchSubjectAltNames()) > 0:
		v.report(p, "match_subject_alt_names", validate.Finding{Message: alone, Help: help})
	}
	if !isEmpty(v.GetCrl()) {
		v.report(p, "crl", validate.Finding{Message: "crl stands without a trusted_ca", Help: help})
	}
	if v.GetAllowExpiredCertificate() {
		v.report(p, "allow_expired_certificate", validate.Finding{Message: "allow_expired_certificate without a trusted_ca: the validity is not looked at anyway", Help: help + ", or leave it out"})
	}
}

// checkRequired judges what a listener asks of client certificates.
func checkRequired(p *validate.Pass, c tlsContext, v peers, known bool) {
	required := c.down.GetRequireClientCertificate()
	path := c.node.Path().Field("require_client_certificate")
	trusts := v.GetTrustedCa() != nil || v.GetCustomValidatorConfig() != nil
	switch {
	case required == nil && c.common().GetValidationContextType() != nil:
		p.Report(validate.Finding{
			Path:    c.commonPath(string(validationField(c.common()))),
			Message: "clients without a certificate get in: there is a validation context, and require_client_certificate is not set",
			Help:    "set require_client_certificate to true, or to false where that is meant", Warning: true,
		})
	case !required.GetValue() || !known || trusts:
	case c.quic:
		p.Report(validate.Finding{Path: path, Message: "a QUIC listener requires client certificates, and has no trusted_ca to verify them by", Help: "set trusted_ca in common_tls_context.validation_context"})
	case len(v.GetVerifyCertificateHash()) == 0 && len(v.GetVerifyCertificateSpki()) == 0 && len(v.GetMatchTypedSubjectAltNames()) == 0 && len(v.GetMatchSubjectAltNames()) == 0:
		p.Report(validate.Finding{Path: path, Message: "client certificates are required, and every one gets in: there is nothing to verify them by", Help: "set trusted_ca in common_tls_context.validation_context", Warning: true})
	}
}

// validationField is the field that says how to verify peers.
func validationField(common *tlsv3.CommonTlsContext) protoreflect.Name {
	m := common.ProtoReflect()
	return m.WhichOneof(m.Descriptor().Oneofs().ByName("validation_context_type")).Name()
}

// checkValidation judges what stands in one validation context.
func checkValidation(p *validate.Pass, v validation) {
	if custom := v.GetCustomValidatorConfig(); custom != nil {
		switch custom.GetName() {
		case "", spiffeValidator, moduleValidator: // field-constraint has the first
			return
		case defaultValidator:
		default:
			v.report(p, "custom_validator_config.name", validate.Finding{
				Message: fmt.Sprintf("there is no certificate validator %q in Envoy, which looks for it by name", custom.GetName()),
				Help:    fmt.Sprintf("one of %q, %q", spiffeValidator, moduleValidator),
			})
			return
		}
	}
	at := v.Path
	element := func(field string, i int, message, help string) {
		v.Path = at.Field(field).Index(i)
		v.report(p, "", validate.Finding{Message: message, Help: help})
	}
	for i, hash := range v.GetVerifyCertificateHash() {
		if !isSHA256(hash) {
			element("verify_certificate_hash", i, "the hash is no SHA-256 in hexadecimal", "64 hexadecimal digits, with or without colons between the bytes")
		}
	}
	for i, spki := range v.GetVerifyCertificateSpki() {
		if hash, err := base64.StdEncoding.Strict().DecodeString(spki); len(spki) == 44 && (err != nil || len(hash) != 32) {
			element("verify_certificate_spki", i, "the hash is no SHA-256 in base64", "openssl x509 -noout -pubkey | openssl pkey -pubin -outform DER | openssl dgst -sha256 -binary | base64")
		}
	}
	for i, m := range v.GetMatchTypedSubjectAltNames() {
		if m.GetSanType() != tlsv3.SubjectAltNameMatcher_OTHER_NAME {
			continue
		}
		if err := boring.CheckOID(m.GetOid()); err != nil {
			element("match_typed_subject_alt_names", i, fmt.Sprintf("%q is no object identifier of an otherName: %v", m.GetOid(), err), "such as 1.3.6.1.4.1.311.20.2.3, the user principal name")
		}
	}
}

// isSHA256 reports whether Envoy decodes a hash. One of another length than the API
// allows is field-constraint's.
func isSHA256(hash string) bool {
	if len([]rune(hash)) < 64 || len(hash) > 95 {
		return true
	}
	if len(hash) == 95 {
		hash = strings.ReplaceAll(hash, ":", "")
	}
	decoded, err := hex.DecodeString(hash)
	return err == nil && len(decoded) == 32
}
