package grpc

import (
	"fmt"
	"maps"
	"slices"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var grpcIgnoredField = &validate.Rule{
	Code:     "grpc-ignored-field",
	Severity: diag.Warning,
	Doc: `gRPC ignores a field that changes Envoy's behaviour.

gRPC ignores unknown fields without a line in its log. This rule reports fields that people
rely on: rewrites, mirrors, timeouts other than max_stream_duration, changes of headers, CORS and
rate limits of routes; active health checks, the detectors of outlier_detection that count
5xx answers, circuit breakers other than max_requests, subsets and overprovisioning of clusters.
Other rules report fields that gRPC rejects.`,
	Messages: ignoringMessages,
	Node: func(p *validate.Pass, n *xds.Node) {
		if _, manager := n.Message.(*hcmv3.HttpConnectionManager); manager && sideOf(n) == neither {
			return
		}
		for _, field := range ignored[n.Name()] {
			if isSet(n.Message, field) {
				p.Report(validate.Finding{
					Path:    n.Path().Field(string(field)),
					Message: fmt.Sprintf("gRPC ignores %s", field),
					Help:    "remove it, or do without it in gRPC clients",
				})
			}
		}
	},
}

// ignored lists the fields that gRPC ignores, by their message.
var ignored = map[protoreflect.FullName][]protoreflect.Name{
	"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager": {"local_reply_config", "request_timeout", "stream_idle_timeout"},
	"envoy.config.route.v3.RouteConfiguration": {
		"request_headers_to_add",
		"request_headers_to_remove", "request_mirror_policies", "response_headers_to_add", "response_headers_to_remove", "typed_per_filter_config",
	},
	"envoy.config.route.v3.VirtualHost": {
		"cors", "rate_limits", "request_headers_to_add", "request_headers_to_remove", "request_mirror_policies",
		"require_tls", "response_headers_to_add", "response_headers_to_remove",
	},
	"envoy.config.route.v3.Route": {"request_headers_to_add", "request_headers_to_remove", "response_headers_to_add", "response_headers_to_remove"},
	"envoy.config.route.v3.RouteAction": {
		"cors", "host_rewrite_header", "host_rewrite_literal", "host_rewrite_path_regex", "idle_timeout", "metadata_match", "path_rewrite_policy",
		"prefix_rewrite", "priority", "rate_limits", "regex_rewrite", "request_mirror_policies", "timeout",
	},
	"envoy.config.route.v3.RouteMatch": {"dynamic_metadata", "filter_state", "grpc", "tls_context"},
	"envoy.config.route.v3.RetryPolicy": {
		"host_selection_retry_max_attempts", "per_try_idle_timeout", "per_try_timeout",
		"rate_limited_retry_back_off", "retriable_headers", "retriable_status_codes", "retry_host_predicate", "retry_priority",
	},
	"envoy.config.cluster.v3.Cluster": {"common_lb_config", "health_checks", "lb_subset_config", "upstream_bind_config"},
	"envoy.config.cluster.v3.CircuitBreakers.Thresholds": {
		"max_connections", "max_pending_requests", "max_retries", "retry_budget",
	},
	"envoy.config.cluster.v3.OutlierDetection": {
		"consecutive_5xx", "consecutive_gateway_failure", "consecutive_local_origin_failure", "enforcing_consecutive_5xx",
		"enforcing_consecutive_gateway_failure", "enforcing_consecutive_local_origin_failure", "split_external_local_origin_errors",
	},
	"envoy.config.endpoint.v3.ClusterLoadAssignment.Policy": {"overprovisioning_factor", "weighted_priority_health"},
	"envoy.config.endpoint.v3.Endpoint":                     {"health_check_config"},
}

var ignoringMessages = slices.Sorted(maps.Keys(ignored))
