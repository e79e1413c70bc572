package filter

import (
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	xffv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/original_ip_detection/xff/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

var connectionManagerOptions = &validate.Rule{
	Code: "connection-manager-options",
	Doc: `Options of an HTTP connection manager conflict or are unsupported.

Envoy refuses the listener where the address of the client comes from an extension
and from use_remote_address or xff_num_trusted_hops too ("may not be mixed"), or
in that extension from both hops and CIDR ranges; where both
strip_matching_host_port and strip_any_host_port are set; where access_log_options
stand beside the deprecated fields that they replace ("Only one of …"); where
max_header_field_size_kb of HTTP/2 exceeds max_request_headers_kb, 60 by default;
where max_response_headers_kb, which only clusters have, is set; and where a header
validator is configured, which its binary does not have.`,
	Messages: []protoreflect.FullName{
		"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"envoy.extensions.http.original_ip_detection.xff.v3.XffConfig",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		report := func(field xds.Path, message, help string) {
			p.Report(validate.Finding{Path: n.Path().Join(field), Message: message, Help: help})
		}
		switch m := n.Message.(type) {
		case *hcmv3.HttpConnectionManager:
			checkClientAddress(m, report)
			checkLogOptions(m, report)
			if m.GetCommonHttpProtocolOptions().GetMaxResponseHeadersKb() != nil {
				report("common_http_protocol_options.max_response_headers_kb", "max_response_headers_kb is no option of a connection manager", "set it in the HttpProtocolOptions of the clusters")
			}
			if m.GetStripMatchingHostPort() && m.GetStripAnyHostPort() {
				report("strip_matching_host_port", "both strip_matching_host_port and strip_any_host_port are set", "keep strip_any_host_port: it strips every port")
			}
			if m.GetTypedHeaderValidationConfig() != nil {
				report("typed_header_validation_config", "Envoy has no header validators in its binary", "remove typed_header_validation_config")
			}
		case *xffv3.XffConfig:
			if m.GetXffNumTrustedHops() > 0 && m.GetXffTrustedCidrs() != nil {
				report("xff_trusted_cidrs", "both xff_num_trusted_hops and xff_trusted_cidrs are set", "keep one of them")
			}
		}
	},
}

func checkClientAddress(m *hcmv3.HttpConnectionManager, report func(field xds.Path, message, help string)) {
	if len(m.GetOriginalIpDetectionExtensions()) == 0 {
		return
	}
	const help = "remove it, or original_ip_detection_extensions"
	if m.GetUseRemoteAddress().GetValue() {
		report("use_remote_address", "use_remote_address stands beside original_ip_detection_extensions", help)
	}
	if m.GetXffNumTrustedHops() > 0 {
		report("xff_num_trusted_hops", "xff_num_trusted_hops stands beside original_ip_detection_extensions", help+"; the xff extension has such a field")
	}
}

func checkLogOptions(m *hcmv3.HttpConnectionManager, report func(field xds.Path, message, help string)) {
	if m.GetAccessLogOptions() == nil {
		return
	}
	const help = "move it into access_log_options"
	if m.GetFlushAccessLogOnNewRequest() {
		report("flush_access_log_on_new_request", "flush_access_log_on_new_request stands beside access_log_options", help)
	}
	if m.GetAccessLogFlushInterval() != nil {
		report("access_log_flush_interval", "access_log_flush_interval stands beside access_log_options", help)
	}
}
