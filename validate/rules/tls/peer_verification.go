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

Envoy rejects

- names to match without a trusted_ca ("SAN-based verification of peer certificates without
  trusted CA is insecure and not allowed")
- crl, allow_expired_certificate and auto_sni_san_validation needs a trusted_ca
- a QUIC listener that requires client certificates without a trusted_ca
- an invalid hash (verify_certificate_hash: 64 hexadecimal digits, or 95 characters with colons;
  verify_certificate_spki: 44 characters of base64)
- an OTHER_NAME matcher without a valid object identifier
- an unknown validator

A secret and default_validation_context in one combined_validation_context count together.

Two things are warnings: with a validation context and without require_client_certificate a
listener accepts clients without a certificate; with require_client_certificate and nothing to
verify by it accepts every certificate.`,
	Checks: []diag.Check{
		{Name: "certificate-hash", Summary: "A hash of a certificate or of its key is invalid."},
		{Name: "client-certificate-optional", Summary: "A listener accepts clients without a certificate."},
		{Name: "client-certificate-unverified", Summary: "A listener accepts every client certificate."},
		{Name: "needs-trusted-ca", Summary: "A setting needs a trusted_ca."},
		{Name: "object-identifier", Summary: "An object identifier is invalid."},
		{Name: "unknown-validator", Summary: "The name of a certificate validator is unknown."},
	},
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

// checkPeers reports the settings in v that need a trusted CA. It is called only if v has no trusted CA.
func checkPeers(p *validate.Pass, c tlsContext, v peers) {
	const help = "set trusted_ca"
	if c.up.GetAutoSniSanValidation() && !isCustom(v.CertificateValidationContext) {
		p.Report(validate.Finding{
			Check: "needs-trusted-ca", Path: c.node.Path().Field("auto_sni_san_validation"),
			Message: "auto_sni_san_validation needs a trusted_ca", Help: help + " in common_tls_context.validation_context",
		})
	}
	if v.GetCustomValidatorConfig() != nil {
		return // any custom validator, even Envoy's own by its name, verifies names itself
	}
	const alone = "matching names needs a trusted_ca"
	switch {
	case len(v.GetMatchTypedSubjectAltNames()) > 0:
		v.report(p, "match_typed_subject_alt_names", validate.Finding{Check: "needs-trusted-ca", Message: alone, Help: help})
	case len(v.GetMatchSubjectAltNames()) > 0:
		v.report(p, "match_subject_alt_names", validate.Finding{Check: "needs-trusted-ca", Message: alone, Help: help})
	}
	if !isEmpty(v.GetCrl()) {
		v.report(p, "crl", validate.Finding{Check: "needs-trusted-ca", Message: "crl needs a trusted_ca", Help: help})
	}
	if v.GetAllowExpiredCertificate() {
		v.report(p, "allow_expired_certificate", validate.Finding{Check: "needs-trusted-ca", Message: "allow_expired_certificate " +
			"needs a trusted_ca", Help: help + ", or remove this field"})
	}
}

// checkRequired checks require_client_certificate of a listener.
func checkRequired(p *validate.Pass, c tlsContext, v peers, known bool) {
	required := c.down.GetRequireClientCertificate()
	path := c.node.Path().Field("require_client_certificate")
	trusts := v.GetTrustedCa() != nil || v.GetCustomValidatorConfig() != nil
	switch {
	case required == nil && c.common().GetValidationContextType() != nil:
		p.Report(validate.Finding{
			Check:   "client-certificate-optional",
			Path:    c.commonPath(string(validationField(c.common()))),
			Message: "require_client_certificate is not set: the listener accepts clients without a certificate",
			Help:    "set require_client_certificate: true; if you mean to accept them, set it to false", Warning: true,
		})
	case !required.GetValue() || !known || trusts:
	case c.quic:
		p.Report(validate.Finding{Check: "needs-trusted-ca", Path: path, Message: "a QUIC listener with " +
			"require_client_certificate needs a trusted_ca", Help: "set trusted_ca in common_tls_context.validation_context"})
	case len(v.GetVerifyCertificateHash()) == 0 && len(v.GetVerifyCertificateSpki()) == 0 &&
		len(v.GetMatchTypedSubjectAltNames()) == 0 && len(v.GetMatchSubjectAltNames()) == 0:
		p.Report(validate.Finding{Check: "client-certificate-unverified", Path: path, Message: "the listener requires client " +
			"certificates and accepts every one: nothing " +
			"verifies them", Help: "set trusted_ca in common_tls_context.validation_context", Warning: true})
	}
}

// validationField returns the field of common that has the validation context. It must be set.
func validationField(common *tlsv3.CommonTlsContext) protoreflect.Name {
	m := common.ProtoReflect()
	return m.WhichOneof(m.Descriptor().Oneofs().ByName("validation_context_type")).Name()
}

// checkValidation checks a validation context by itself.
func checkValidation(p *validate.Pass, v validation) {
	if custom := v.GetCustomValidatorConfig(); custom != nil {
		switch custom.GetName() {
		case "", spiffeValidator, moduleValidator: // field-constraint reports an empty name
			return
		case defaultValidator:
		default:
			v.report(p, "custom_validator_config.name", validate.Finding{
				Check:   "unknown-validator",
				Message: fmt.Sprintf("unknown certificate validator %q: Envoy finds it by its name", custom.GetName()),
				Help:    fmt.Sprintf("write %q or %q", spiffeValidator, moduleValidator),
			})
			return
		}
	}
	at := v.Path
	element := func(check validate.CheckName, field string, i int, message, help string) {
		v.Path = at.Field(field).Index(i)
		v.report(p, "", validate.Finding{Check: check, Message: message, Help: help})
	}
	for i, hash := range v.GetVerifyCertificateHash() {
		if !isSHA256(hash) {
			element("certificate-hash", "verify_certificate_hash", i, "the hash is not a "+
				"hexadecimal SHA-256", "write 64 hexadecimal digits, with or without colons between the bytes")
		}
	}
	for i, spki := range v.GetVerifyCertificateSpki() {
		if hash, err := base64.StdEncoding.Strict().DecodeString(spki); len(spki) == 44 && (err != nil || len(hash) != 32) {
			element("certificate-hash", "verify_certificate_spki", i, "the hash is not a "+
				"SHA-256 in base64", "create it with: openssl x509 -noout -pubkey | openssl pkey -pubin -outform DER | openssl "+
				"dgst -sha256 -binary | base64")
		}
	}
	for i, m := range v.GetMatchTypedSubjectAltNames() {
		if m.GetSanType() != tlsv3.SubjectAltNameMatcher_OTHER_NAME {
			continue
		}
		if err := boring.CheckOID(m.GetOid()); err != nil {
			element("object-identifier", "match_typed_subject_alt_names", i, fmt.Sprintf("%q is not a valid object "+
				"identifier: %v", m.GetOid(), err), "write an identifier such as 1.3.6.1.4.1.311.20.2.3, the user principal name")
		}
	}
}

// isSHA256 reports whether Envoy can decode a SHA-256 hash. It returns true for a hash of a length that the API
// refuses, because the rule field-constraint reports it.
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
