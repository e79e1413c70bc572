package cluster

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var proxyProtocolTLV = &validate.Rule{
	Code:     "proxy-protocol-tlv",
	Severity: diag.Error,
	Doc: `A PROXY protocol TLV has no value, or two.

Envoy takes either value or format_string for a TLV that it adds, and refuses both
("only one of 'value' or 'format_string' may be set") and none ("one of 'value' or
'format_string' must be set"); a value without bytes is none. The version of the
protocol makes no difference.`,
	Messages: []protoreflect.FullName{"envoy.config.core.v3.TlvEntry"},
	Node: func(p *validate.Pass, n *xds.Node) {
		if facts.Inside(n, facts.TLVsOfHealthCheck) {
			return
		}
		m := n.Message.(*corev3.TlvEntry)
		value, format := len(m.GetValue()) > 0, m.GetFormatString() != nil
		switch {
		case value && format:
			p.Report(validate.Finding{Path: n.Path().Field("format_string"), Message: "the TLV has both value and format_string", Help: "keep one of the two"})
		case !value && !format:
			p.Report(validate.Finding{Path: n.Path(), Message: "the TLV has no value", Help: "set value, of one byte at least, or format_string"})
		}
	},
}
