package cluster

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var http2Settings = &validate.Rule{
	Code: "http2-settings",
	Doc: `HTTP/2 settings conflict or are not allowed.

In custom_settings_parameters Envoy rejects two different values for one identifier
("inconsistent"), a parameter that is also set in its own field (hpack_table_size,
max_concurrent_streams, initial_stream_window_size), ENABLE_CONNECT_PROTOCOL (8), which
belongs in allow_connect, and ENABLE_PUSH (2) with a value other than 0.

max_header_field_size_kb must not exceed the limit for all headers together:
max_request_headers_kb of the HTTP connection manager (60 by default), or
max_response_headers_kb of a cluster.`,
	Checks: []diag.Check{
		{Name: "connect-protocol", Summary: "ENABLE_CONNECT_PROTOCOL is set as a custom parameter."},
		{Name: "header-field-size", Summary: "A header field may be larger than all headers."},
		{Name: "parameter-twice", Summary: "A parameter is set twice, or also in its own field."},
		{Name: "push", Summary: "ENABLE_PUSH is not 0."},
	},
	Messages: []protoreflect.FullName{"envoy.config.core.v3.Http2ProtocolOptions"},
	Node: func(p *validate.Pass, n *xds.Node) {
		m := n.Message.(*corev3.Http2ProtocolOptions)
		if c, ok := n.Parent.Message.(*clusterv3.Cluster); ok && c.GetTypedExtensionProtocolOptions()[httpProtocolOptions] != nil {
			return // Envoy ignores the older fields of the cluster
		}
		checkCustomSettings(p, n, m)
		field, limit := headersLimit(n)
		if size := m.GetMaxHeaderFieldSizeKb(); size != nil && limit != nil && size.GetValue() > limit.GetValue() {
			p.Report(validate.Finding{
				Check:   "header-field-size",
				Path:    n.Path().Field("max_header_field_size_kb"),
				Message: fmt.Sprintf("max_header_field_size_kb %d exceeds %s %d", size.GetValue(), field, limit.GetValue()),
				Help:    fmt.Sprintf("raise %s, or lower max_header_field_size_kb", field),
			})
		}
	},
}

// headersLimit returns the field that limits the size of all headers on connections with these options, and the
// limit in KB. limit is nil if the field is not set and has no default.
func headersLimit(n *xds.Node) (field string, limit *wrapperspb.UInt32Value) {
	switch m := n.Parent.Message.(type) {
	case *hcmv3.HttpConnectionManager:
		if m.GetMaxRequestHeadersKb() == nil {
			return "max_request_headers_kb", wrapperspb.UInt32(60)
		}
		return "max_request_headers_kb", m.GetMaxRequestHeadersKb()
	case *clusterv3.Cluster:
		return "max_response_headers_kb", m.GetCommonHttpProtocolOptions().GetMaxResponseHeadersKb()
	}
	options, _ := xds.Enclosing[*httpv3.HttpProtocolOptions](n)
	return "max_response_headers_kb", options.GetCommonHttpProtocolOptions().GetMaxResponseHeadersKb()
}

// settingField returns the field of m that has the same meaning as an HTTP/2 setting, or "" if no such field is
// set.
func settingField(identifier uint32, m *corev3.Http2ProtocolOptions) string {
	switch {
	case identifier == 1 && m.GetHpackTableSize() != nil:
		return "hpack_table_size"
	case identifier == 3 && m.GetMaxConcurrentStreams() != nil:
		return "max_concurrent_streams"
	case identifier == 4 && m.GetInitialStreamWindowSize() != nil:
		return "initial_stream_window_size"
	}
	return ""
}

func checkCustomSettings(p *validate.Pass, n *xds.Node, m *corev3.Http2ProtocolOptions) {
	const enablePush, enableConnect = 2, 8
	values := make(map[uint32]uint32)
	for i, s := range m.GetCustomSettingsParameters() {
		identifier, value := s.GetIdentifier().GetValue(), s.GetValue().GetValue()
		if s.GetIdentifier() == nil || s.GetValue() == nil {
			continue // reported by field-constraint
		}
		f := validate.Finding{Path: n.Path().Field("custom_settings_parameters").Index(i)}
		earlier, doubled := values[identifier]
		values[identifier] = value
		switch {
		case identifier == enableConnect:
			f.Check = "connect-protocol"
			f.Message = "ENABLE_CONNECT_PROTOCOL is not allowed in custom_settings_parameters"
			f.Help = "set allow_connect instead"
		case identifier == enablePush && value == 1:
			f.Check = "push"
			f.Message = "ENABLE_PUSH must be 0: Envoy does not push"
			f.Help = "remove it"
		case doubled && earlier != value:
			f.Check = "parameter-twice"
			f.Message = fmt.Sprintf("conflicting values for parameter %d: %d and %d", identifier, earlier, value)
			f.Help = "keep one of them"
		case settingField(identifier, m) != "":
			f.Check = "parameter-twice"
			f.Message = fmt.Sprintf("parameter %d is also set in its own field, %s", identifier, settingField(identifier, m))
			f.Help = "keep one of them"
		default:
			continue
		}
		p.Report(f)
	}
}
