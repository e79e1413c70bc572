package filter

import (
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	xffv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/original_ip_detection/xff/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var connectionManagerOptions = &validate.Rule{
	Code: "connection-manager-options",
	Doc: `Options of an HTTP connection manager conflict or are unsupported.

Envoy rejects a listener whose HTTP connection manager has

- original_ip_detection_extensions together with use_remote_address or xff_num_trusted_hops
  ("may not be mixed"), or an xff extension with both hops and CIDR ranges;
- both strip_matching_host_port and strip_any_host_port;
- access_log_options together with the deprecated fields that they replace ("Only one of …");
- max_response_headers_kb, which only clusters support;
- typed_header_validation_config: the released binary has no header validators.

http2-settings checks its HTTP/2 options.`,
	Checks: []diag.Check{
		{Name: "access-log-options", Summary: "An option of the access log is set in two fields."},
		{Name: "client-address", Summary: "Two ways to find the address of the client are mixed."},
		{Name: "header-validation", Summary: "typed_header_validation_config is set, and no extension for it exists."},
		{Name: "response-headers-size", Summary: "max_response_headers_kb works in clusters only."},
		{Name: "strip-port", Summary: "Both strip_matching_host_port and strip_any_host_port are set."},
		{Name: "xff-hops-and-ranges", Summary: "An xff extension has both hops and CIDR ranges."},
	},
	Messages: []protoreflect.FullName{
		"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"envoy.extensions.http.original_ip_detection.xff.v3.XffConfig",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		report := func(check validate.CheckName, field xds.Path, message, help string) {
			p.Report(validate.Finding{Check: check, Path: n.Path().Join(field), Message: message, Help: help})
		}
		switch m := n.Message.(type) {
		case *hcmv3.HttpConnectionManager:
			checkClientAddress(m, report)
			checkLogOptions(m, report)
			if m.GetCommonHttpProtocolOptions().GetMaxResponseHeadersKb() != nil {
				report("response-headers-size", "common_http_protocol_options.max_response_headers_kb", "a connection manager "+
					"does not support max_response_headers_kb", "set it in the HttpProtocolOptions of the clusters")
			}
			if m.GetStripMatchingHostPort() && m.GetStripAnyHostPort() {
				report("strip-port", "strip_matching_host_port", "both strip_matching_host_port and "+
					"strip_any_host_port are set", "keep strip_any_host_port: it strips every port")
			}
			if m.GetTypedHeaderValidationConfig() != nil {
				report("header-validation", "typed_header_validation_config", "the released Envoy has no "+
					"header validators", "remove typed_header_validation_config")
			}
		case *xffv3.XffConfig:
			if m.GetXffNumTrustedHops() > 0 && m.GetXffTrustedCidrs() != nil {
				report("xff-hops-and-ranges", "xff_trusted_cidrs", "both xff_num_trusted_hops and xff_trusted_cidrs are set", "keep one of them")
			}
		}
	},
}

func checkClientAddress(m *hcmv3.HttpConnectionManager, report func(check validate.CheckName, field xds.Path, message, help string)) {
	if len(m.GetOriginalIpDetectionExtensions()) == 0 {
		return
	}
	const help = "keep one of the two"
	if m.GetUseRemoteAddress().GetValue() {
		report("client-address", "use_remote_address", "both use_remote_address and original_ip_detection_extensions are set", help)
	}
	if m.GetXffNumTrustedHops() > 0 {
		report("client-address", "xff_num_trusted_hops", "both xff_num_trusted_hops and "+
			"original_ip_detection_extensions are set", help+"; the xff extension has a field of this name")
	}
}

func checkLogOptions(m *hcmv3.HttpConnectionManager, report func(check validate.CheckName, field xds.Path, message, help string)) {
	if m.GetAccessLogOptions() == nil {
		return
	}
	const help = "move it to access_log_options"
	if m.GetFlushAccessLogOnNewRequest() {
		report("access-log-options", "flush_access_log_on_new_request", "both flush_access_log_on_new_request and access_log_options are set", help)
	}
	if m.GetAccessLogFlushInterval() != nil {
		report("access-log-options", "access_log_flush_interval", "both access_log_flush_interval and access_log_options are set", help)
	}
}
