package tls

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/boring"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var tlsParameters = &validate.Rule{
	Code:     "tls-parameters",
	Severity: diag.Error,
	Doc: `A TLS parameter, ALPN protocol or SNI is invalid or unsupported.

Envoy passes tls_params to BoringSSL, and rejects an unknown name ("Failed to initialize cipher
suites", "ECDH curves", "TLS signature algorithms"), a duplicate or empty curve or signature
algorithm, and a list of cipher suites that leaves none. The cipher suites of TLS 1.3 can't be
configured. An ALPN protocol has at most 255 bytes, all together 65534 ("Invalid ALPN protocol
string"). An empty one crashes Envoy in a cluster ("assert failure: rc == 0"); in a listener it
turns ALPN off (a warning). An SNI must not contain a NUL character.

A minimum version above the maximum is rejected in the tls_params of a certificate. In those of a
context Envoy accepts it, and no handshake succeeds (a warning). In a cluster the default maximum
is TLS 1.2. No default cipher suite works below TLS 1.2. Envoy ignores the tls_params of a
cluster's certificate.

If a context waits for an SDS secret, Envoy accepts all of this, and rejects the secret or crashes
when it arrives: no connection ever works.`,
	Checks: []diag.Check{
		{Name: "alpn", Summary: "An ALPN protocol is too long, or an empty one crashes Envoy."},
		{Name: "alpn-off", Summary: "An empty ALPN protocol turns ALPN off for all clients."},
		{Name: "default-ciphers", Summary: "No default cipher suite works with the maximum version."},
		{Name: "ignored-params", Summary: "Envoy ignores the tls_params of a cluster's certificate."},
		{Name: "sni", Summary: "An SNI contains a NUL character."},
		{Name: "unknown-name", Summary: "A list of cipher suites, curves or signature algorithms is invalid."},
		{Name: "version-order", Summary: "The minimum version is above the maximum."},
	},
	Messages: []protoreflect.FullName{tlsDownstream, tlsUpstream},
	Lookup: func(p *validate.LookupPass, n *xds.Node) {
		c, ok := tlsContextAt(n)
		if !ok {
			return
		}
		params := c.common().GetTlsParams()
		t := part{Place: facts.Place{Resource: p.Resource, Path: c.commonPath("tls_params")}, users: []tlsContext{c}}
		checkNames(p, t, params)
		checkVersions(p, c, t, params)
		checkALPN(p, c)
		if strings.Contains(c.up.GetSni(), "\x00") {
			p.Report(validate.Finding{Check: "sni", Path: n.Path().Field("sni"), Message: "sni contains a " +
				"NUL character: " + p.Resource.Refusal(), Help: "write the hostname of the upstream"})
		}
		for i, m := range c.common().GetTlsCertificates() {
			if !isPassedOver(m) {
				t.Path = c.commonPath("tls_certificates").Index(i)
				checkOverrides(p, certificate{m, t})
			}
		}
	},
	Resource: func(p *validate.LookupPass) {
		if s, t, ok := secretPart(p, "tls_certificate"); ok {
			checkOverrides(p, certificate{s.GetTlsCertificate(), t})
		}
	},
}

// untilSecret returns the end of a message about a fault that Envoy accepts until secrets arrive: if all contexts
// wait for secrets, Envoy gives nothing to BoringSSL yet. Otherwise untilSecret returns "".
func untilSecret(p *validate.LookupPass, users []tlsContext) string {
	isReady := func(c tlsContext) bool { return !c.awaitsSecret(p) }
	if len(users) == 0 || slices.ContainsFunc(users, isReady) {
		return ""
	}
	return "; Envoy accepts it until the secret arrives"
}

// checkNames checks the names of cipher suites, groups and signature algorithms.
func checkNames(p *validate.LookupPass, t part, params *tlsv3.TlsParameters) {
	at, names := t.Path, p.Envoy.TLSNames()
	var suites []boring.CipherSuite
	var ciphers []string
	for _, c := range names.Ciphers {
		suites, ciphers = append(suites, boring.CipherSuite(c)), append(ciphers, c.Name)
	}
	among := func(known map[string]string) func(string) (string, error) {
		return func(list string) (string, error) { return boring.CheckNames(list, known) }
	}
	for _, l := range []struct {
		field, noun string
		values      []string
		check       func(list string) (name string, err error)
		known       iter.Seq[string]
	}{
		{
			"cipher_suites", "cipher suite", params.GetCipherSuites(),
			func(list string) (string, error) { return boring.CheckCiphers(list, suites) }, slices.Values(ciphers),
		},
		{"ecdh_curves", "curve", params.GetEcdhCurves(), among(names.Groups), maps.Keys(names.Groups)},
		{"signature_algorithms", "signature algorithm", params.GetSignatureAlgorithms(), among(names.Signatures), maps.Keys(names.Signatures)},
	} {
		name, err := l.check(strings.Join(l.values, ":"))
		if err == nil {
			continue
		}
		known := slices.Sorted(l.known)
		t.Path = at.Field(l.field)
		if i := slices.IndexFunc(l.values, func(v string) bool { return strings.Contains(v, name) }); name != "" && i >= 0 {
			t.Path = t.Path.Index(i)
		}
		f := validate.Finding{
			Check:   "unknown-name",
			Message: fmt.Sprintf("invalid list of %ss: %v", l.noun, err) + untilSecret(p, t.users), Help: "write one of " + strings.Join(known, ", "),
		}
		if near := diag.NewCandidates(known).Nearest(name); near != "" && near != name {
			f.Help, f.Correction = "", diag.Correction{Wrong: name, Right: near}
		}
		if l.field == "cipher_suites" && (strings.HasPrefix(name, "TLS_AES_") || strings.HasPrefix(name, "TLS_CHACHA20_")) {
			f.Help, f.Correction = "remove it: the cipher suites of TLS 1.3 can't be configured", diag.Correction{}
		}
		if since, newer := names.Newer[name]; newer {
			f.Help, f.Correction = fmt.Sprintf("%s came with Envoy %s", name, since), diag.Correction{}
		}
		t.report(&p.Pass, "", f)
	}
}

// versions returns the lowest and the highest TLS version of a context. It includes Envoy's defaults.
func versions(c tlsContext, params *tlsv3.TlsParameters) (low, high tlsv3.TlsParameters_TlsProtocol) {
	low, high = params.GetTlsMinimumProtocolVersion(), params.GetTlsMaximumProtocolVersion()
	if low == tlsv3.TlsParameters_TLS_AUTO {
		low = tlsv3.TlsParameters_TLSv1_2
	}
	if high == tlsv3.TlsParameters_TLS_AUTO {
		high = tlsv3.TlsParameters_TLSv1_2
		if c.isServer() {
			high = tlsv3.TlsParameters_TLSv1_3
		}
	}
	return low, high
}

func checkVersions(p *validate.LookupPass, c tlsContext, t part, params *tlsv3.TlsParameters) {
	if c.quic || len(params.GetCompliancePolicies()) > 0 {
		return // QUIC and compliance policies set the versions themselves
	}
	low, high := versions(c, params)
	field := "tls_minimum_protocol_version"
	if params.GetTlsMinimumProtocolVersion() == tlsv3.TlsParameters_TLS_AUTO {
		field = "tls_maximum_protocol_version"
	}
	switch {
	case low > high && params.GetTlsMaximumProtocolVersion() == tlsv3.TlsParameters_TLS_AUTO:
		t.report(&p.Pass, field, validate.Finding{
			Check:   "version-order",
			Message: fmt.Sprintf("the minimum version %v is above the default maximum of a cluster, %v: no handshake succeeds", low, high),
			Help:    fmt.Sprintf("set tls_maximum_protocol_version: %v too", low), Warning: true,
		})
	case low > high:
		t.report(&p.Pass, field, validate.Finding{
			Check:   "version-order",
			Message: fmt.Sprintf("the minimum version %v is above the maximum %v: no handshake succeeds", low, high),
			Help:    "raise the maximum or lower the minimum, which is TLSv1_2 by default", Warning: true,
		})
	case high < tlsv3.TlsParameters_TLSv1_2 && len(params.GetCipherSuites()) == 0:
		t.report(&p.Pass, "tls_maximum_protocol_version", validate.Finding{
			Check:   "default-ciphers",
			Message: fmt.Sprintf("no default cipher suite works with %v: no handshake succeeds", high),
			Help:    "set cipher_suites, such as ECDHE-RSA-AES128-SHA", Warning: true,
		})
	}
}

// checkOverrides checks the tls_params of a certificate.
func checkOverrides(p *validate.LookupPass, cert certificate) {
	params := cert.GetTlsParams()
	if params == nil {
		return
	}
	if len(cert.users) > 0 && !cert.isServers() {
		cert.report(&p.Pass, "tls_params", validate.Finding{
			Check:   "ignored-params",
			Message: "Envoy ignores the tls_params of a cluster's certificate",
			Help:    "set tls_params of common_tls_context", Warning: true,
		})
		return
	}
	t := cert.part
	t.Path = t.Path.Field("tls_params")
	checkNames(p, t, params)
	for _, c := range cert.users {
		if !c.isServer() {
			continue
		}
		low, high := versions(c, c.common().GetTlsParams())
		if v := params.GetTlsMinimumProtocolVersion(); v != tlsv3.TlsParameters_TLS_AUTO {
			low = v
		}
		if v := params.GetTlsMaximumProtocolVersion(); v != tlsv3.TlsParameters_TLS_AUTO {
			high = v
		}
		if low > high {
			t.report(&p.Pass, "", validate.Finding{
				Check:   "version-order",
				Message: fmt.Sprintf("together with the context's tls_params, the minimum version is %v and the maximum %v", low, high),
				Help:    "set both in the certificate's tls_params",
			})
			return
		}
	}
}

// checkALPN checks the protocols as Envoy reads them: Envoy joins the list with commas, and splits the result at
// commas.
func checkALPN(p *validate.LookupPass, c tlsContext) {
	list := c.common().GetAlpnProtocols()
	all := strings.Join(list, ",")
	if all == "" {
		return
	}
	const longest, longestList = 255, 65534
	path := c.commonPath("alpn_protocols")
	late := untilSecret(p, []tlsContext{c})
	for i, entry := range list {
		for protocol := range strings.SplitSeq(entry, ",") {
			switch {
			case protocol == "" && c.isServer():
				p.Report(validate.Finding{Check: "alpn-off", Path: path.Index(i), Message: "an empty ALPN protocol turns ALPN off " +
					"for all clients", Help: "write a protocol such as h2 or http/1.1", Warning: true})
			case protocol == "":
				p.Report(validate.Finding{Check: "alpn", Path: path.Index(i), Message: "an empty ALPN protocol " +
					"crashes Envoy" + late, Help: "write a protocol such as h2 or http/1.1"})
			case len(protocol) > longest:
				p.Report(validate.Finding{Check: "alpn", Path: path.Index(i), Message: fmt.Sprintf("an ALPN protocol has %d "+
					"bytes, the limit is %d", len(protocol), longest) + late, Help: "write a protocol such as h2 or http/1.1"})
			default:
				continue
			}
			return
		}
	}
	if len(all) > longestList {
		p.Report(validate.Finding{Check: "alpn", Path: path, Message: fmt.Sprintf("the ALPN protocols have %d bytes with their "+
			"commas, the limit is %d", len(all), longestList) + late, Help: "write short protocols, such as h2 and http/1.1"})
	}
}
