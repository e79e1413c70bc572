package tls

import (
	"fmt"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

// ticketKeyLength is the length of a session ticket key in bytes: a name, a key for HMAC and a key for AES.
const ticketKeyLength = 80

var sessionTicketKey = &validate.Rule{
	Code:     "session-ticket-key",
	Severity: diag.Error,
	Doc: `A TLS session ticket key is not 80 bytes long.

A key consists of 16 bytes of name, 32 bytes for HMAC and 32 bytes for AES-256. Envoy rejects any
other length ("Incorrect TLS session ticket key length. Length 48, expected length 80."). Other
servers use keys of 48 bytes. Create one with: openssl rand 80.`,
	Messages: []protoreflect.FullName{tlsDownstream},
	Node: func(p *validate.Pass, n *xds.Node) {
		c, ok := tlsContextAt(n)
		if !ok {
			return
		}
		t := part{Place: facts.Place{Resource: p.Resource, Path: n.Path().Field("session_ticket_keys")}, users: []tlsContext{c}}
		checkTicketKeys(p, t, c.down.GetSessionTicketKeys())
	},
	Resource: func(p *validate.LookupPass) {
		if s, t, ok := secretPart(p, "session_ticket_keys"); ok {
			checkTicketKeys(&p.Pass, t, s.GetSessionTicketKeys())
		}
	},
}

func checkTicketKeys(p *validate.Pass, t part, m *tlsv3.TlsSessionTicketKeys) {
	keys := t.Path.Field("keys")
	for i, key := range m.GetKeys() {
		if data, known := content(key); known && len(data) != ticketKeyLength {
			t.Path = keys.Index(i)
			t.report(p, "", validate.Finding{
				Message: fmt.Sprintf("the session ticket key has %d bytes, and needs exactly %d", len(data), ticketKeyLength),
				Help:    "create one with: openssl rand 80",
			})
		}
	}
}
