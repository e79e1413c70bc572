package tls

import (
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/internal/expiry"
	"xdspub/validate"
	"xdspub/validate/boring"
	"xdspub/validate/facts"
	"xdspub/xds"
)

// The checks of expiredCertificate.
const (
	checkExpired     validate.CheckName = "expired"
	checkExpiresSoon validate.CheckName = "expires-soon"
	checkNotYetValid validate.CheckName = "not-yet-valid"
)

var expiredCertificate = &validate.Rule{
	Code:     "expired-certificate",
	Severity: diag.Warning,
	Doc: `A certificate has expired, expires soon, or is not valid yet.

Envoy accepts and uses the certificate, and peers that verify it close the connection. If all
certificates in trusted_ca are out of date, Envoy rejects every peer, unless
allow_expired_certificate is set. A running Envoy does not notice that its certificate expires.

A certificate expires soon in the last 14 days before its end, or in the last sixth of its validity
if that is shorter. watch and serve judge by the time of day as well: the finding comes with the
next rescan, without a change of the source tree. While a certificate is out of date, status says
"not in sync".`,
	Checks: []diag.Check{
		{Name: string(checkExpired), Summary: "A certificate has expired."},
		{Name: string(checkExpiresSoon), Summary: "A certificate expires soon."},
		{Name: string(checkNotYetValid), Summary: "A certificate is not valid yet."},
	},
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
	p.Expires(leaf.NotAfter)
	check, why := dated(p, leaf)
	switch check {
	case "":
	case checkExpiresSoon:
		c.report(p, field, validate.Finding{Check: check, Message: "the certificate " + why, Help: "replace it before: peers reject an expired certificate"})
	default:
		c.report(p, field, validate.Finding{Check: check, Message: "the certificate " + why, Help: "replace it: peers reject this certificate"})
	}
}

func checkTrustDates(p *validate.Pass, t part, m *tlsv3.CertificateValidationContext) {
	data, known := content(m.GetTrustedCa())
	if !known || m.GetAllowExpiredCertificate() || m.GetCustomValidatorConfig() != nil {
		return
	}
	trust, err := boring.ReadTrust(data)
	if err != nil || len(trust.Certificates) == 0 {
		return
	}
	until := trust.Certificates[0].NotAfter // with the last certificate, trust expires
	for _, c := range trust.Certificates {
		if c.NotAfter.After(until) {
			until = c.NotAfter
		}
	}
	p.Expires(until)
	// the valid certificate that expires last; nil if no certificate is valid
	var last *boring.Certificate
	for _, c := range trust.Certificates {
		switch check, _ := dated(p, c); {
		case check == "":
			return
		case check == checkExpiresSoon && (last == nil || c.NotAfter.After(last.NotAfter)):
			last = c
		}
	}
	f := validate.Finding{Help: "replace it: Envoy rejects every peer"}
	switch one := len(trust.Certificates) == 1; {
	case one:
		f.Check, f.Message = dated(p, trust.Certificates[0])
		f.Message = "the trusted CA " + f.Message
	case last != nil:
		f.Check, f.Message = checkExpiresSoon, "the last valid one of the trusted CAs "+expiresOn(last)
	default:
		f.Check, f.Message = checkExpired, "no trusted CA is valid now"
	}
	if f.Check == checkExpiresSoon {
		f.Help = "add the next CA before: Envoy rejects every peer once all trusted CAs have expired"
	}
	t.report(p, "trusted_ca", f)
}

// dated returns the check that reports a certificate because of its dates, and the reason. The check is "" if the
// certificate is valid and does not expire soon.
func dated(p *validate.Pass, c *boring.Certificate) (check validate.CheckName, why string) {
	switch {
	case p.Passed(c.NotAfter):
		return checkExpired, "expired on " + c.NotAfter.UTC().Format(dateForm)
	case !p.Passed(c.NotBefore.Add(-time.Nanosecond)):
		return checkNotYetValid, "is not valid before " + c.NotBefore.UTC().Format(dateForm)
	case p.Passed(expiry.Validity{From: c.NotBefore, Until: c.NotAfter}.Soon()):
		return checkExpiresSoon, expiresOn(c)
	}
	return "", ""
}

func expiresOn(c *boring.Certificate) string {
	return "expires on " + c.NotAfter.UTC().Format(dateForm)
}
