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

Each TLV that Envoy adds needs exactly one of value and format_string. Envoy rejects both
together ("only one of 'value' or 'format_string' may be set") and neither ("one of 'value'
or 'format_string' must be set"). An empty value counts as missing. The version of the PROXY
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
			p.Report(validate.Finding{Path: n.Path(), Message: "the TLV has no value", Help: "set value, with at least one byte, or format_string"})
		}
	},
}
