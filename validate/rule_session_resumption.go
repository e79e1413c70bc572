package validate

import (
	"fmt"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/xds"
)

// ticketKeyLength is that of a name, a key for HMAC and a key for AES.
const ticketKeyLength = 80

var sessionResumption = &Rule{
	Code:     "session-resumption",
	Severity: diag.Error,
	Doc: `TLS sessions can't be resumed in the way that is set.

A session ticket key has 80 bytes; Envoy refuses another length ("Incorrect TLS
session ticket key length. Length 48, expected length 80."): "openssl rand 80" makes
one, 48 bytes are those of other servers.

A listener that gets its certificates on demand resumes no sessions, and must say
so: Envoy wants disable_stateless_session_resumption and
disable_stateful_session_resumption ("On demand certificates are not integrated
with session resumption support").`,
	Messages: []protoreflect.FullName{tlsDownstream},
	Node: func(p *Pass, n *xds.Node) {
		c, ok := tlsContextAt(n)
		if !ok {
			return
		}
		t := part{place: place{p.Resource, n.Path().Field("session_ticket_keys")}, users: []tlsContext{c}}
		judgeTicketKeys(p, t, c.down.GetSessionTicketKeys())
		const onDemand = "envoy.extensions.transport_sockets.tls.cert_selectors.on_demand_secret.v3.Config"
		if selector := c.common().GetCustomTlsCertificateSelector().GetTypedConfig(); selector != nil && typeOf(selector) == onDemand &&
			!(c.down.GetDisableStatelessSessionResumption() && c.down.GetDisableStatefulSessionResumption()) {
			p.Report(Finding{
				Path:    c.commonPath("custom_tls_certificate_selector"),
				Message: "certificates on demand, and TLS sessions can be resumed: Envoy refuses that",
				Help:    "set disable_stateless_session_resumption and disable_stateful_session_resumption",
			})
		}
	},
	Snapshot: func(p *Pass) {
		secretParts(p, "session_ticket_keys", func(s *tlsv3.Secret, t part) { judgeTicketKeys(p, t, s.GetSessionTicketKeys()) })
	},
}

func judgeTicketKeys(p *Pass, t part, m *tlsv3.TlsSessionTicketKeys) {
	keys := t.path.Field("keys")
	for i, key := range m.GetKeys() {
		if data, known := content(key); known && len(data) != ticketKeyLength {
			t.path = keys.Index(i)
			t.report(p, "", Finding{
				Message: fmt.Sprintf("a session ticket key of %d bytes; Envoy takes %d", len(data), ticketKeyLength),
				Help:    "openssl rand 80",
			})
		}
	}
}
