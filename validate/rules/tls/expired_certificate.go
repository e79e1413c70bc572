package tls

import (
	"fmt"
	"slices"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/boring"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var expiredCertificate = &validate.Rule{
	Code:     "expired-certificate",
	Severity: diag.Warning,
	Doc: `A certificate has expired, or is not valid yet.

Envoy accepts and uses the certificate, and peers that verify it close the connection. If all
certificates in trusted_ca are out of date, Envoy rejects every peer, unless
allow_expired_certificate is set.`,
	Messages: []protoreflect.FullName{tlsCertificate, tlsValidation},
	Node: func(p *validate.Pass, n *xds.Node) {
		if !p.Timed() {
			return
		}
		c, ok := tlsContextAt(n)
		if !ok {
			return
		}
		t := part{Place: facts.Place{Resource: p.Resource, Path: n.Path()}, users: []tlsContext{c}}
		switch m := n.Message.(type) {
		case *tlsv3.TlsCertificate:
			checkDates(p, certificate{m, t})
		case *tlsv3.CertificateValidationContext:
			checkTrustDates(p, t, m)
		}
	},
	Resource: func(p *validate.LookupPass) {
		if !p.Timed() {
			return
		}
		if s, t, ok := secretPart(p, "tls_certificate"); ok {
			checkDates(&p.Pass, certificate{s.GetTlsCertificate(), t})
		}
		if s, t, ok := secretPart(p, "validation_context"); ok {
			checkTrustDates(&p.Pass, t, s.GetValidationContext())
		}
	},
}

func checkDates(p *validate.Pass, c certificate) {
	leaf, field, err := c.load()
	if leaf == nil || err != nil {
		return
	}
	if why := outOfDate(p, leaf); why != "" {
		c.report(p, field, validate.Finding{Message: "the certificate " + why, Help: "replace it: peers reject this certificate"})
	}
}

func checkTrustDates(p *validate.Pass, t part, m *tlsv3.CertificateValidationContext) {
	data, known := content(m.GetTrustedCa())
	if !known || m.GetAllowExpiredCertificate() || m.GetCustomValidatorConfig() != nil {
		return
	}
	trust, err := boring.ReadTrust(data)
	if err != nil || len(trust.Certificates) == 0 ||
		slices.ContainsFunc(trust.Certificates, func(c *boring.Certificate) bool { return outOfDate(p, c) == "" }) {
		return
	}
	message := "the trusted CA " + outOfDate(p, trust.Certificates[0])
	if len(trust.Certificates) > 1 {
		message = "no trusted CA is valid now"
	}
	t.report(p, "trusted_ca", validate.Finding{Message: message, Help: "replace it: Envoy rejects every peer"})
}

// outOfDate says why a certificate is not valid now; empty where it is.
func outOfDate(p *validate.Pass, c *boring.Certificate) string {
	switch {
	case p.Passed(c.NotAfter):
		return fmt.Sprintf("expired on %s", c.NotAfter.UTC().Format(dateForm))
	case !p.Passed(c.NotBefore.Add(-time.Nanosecond)):
		return fmt.Sprintf("is not valid before %s", c.NotBefore.UTC().Format(dateForm))
	default:
		return ""
	}
}
