package filter

import (
	"fmt"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	bandwidthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/bandwidth_limit/v3"
	localratev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/local_ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var rateLimit = &validate.Rule{
	Code: "rate-limit",
	Doc: `A rate limit has missing, invalid or unsupported settings.

A local token bucket must have a fill_interval of at least 50 ms ("local rate limit token
bucket fill timer must be >= 50ms"), in descriptors too. Envoy rounds down to milliseconds,
and counts less than 1 ms as not set: a warning, but an error in a descriptor. A
local_ratelimit or bandwidth_limit on a route needs its own bucket or limit ("local rate limit
token bucket must be set for per filter configs"). local_cluster_rate_limit does not work per
connection, and needs local_cluster_name in the bootstrap ("no local cluster name is
present").

Thrift routes support only the actions source_cluster, destination_cluster, request_headers,
remote_address, generic_key and header_value_match ("unsupported RateLimit Action").`,
	Checks: []diag.Check{
		{Name: "fill-interval", Summary: "A token bucket is filled more often than every 50 ms."},
		{Name: "local-cluster", Summary: "local_cluster_rate_limit works neither per connection nor without a local cluster."},
		{Name: "no-limit", Summary: "A configuration for a route has no limit of its own."},
		{Name: "thrift-action", Summary: "thrift_proxy does not support an action."},
	},
	Messages: []protoreflect.FullName{
		"envoy.config.route.v3.RateLimit",
		"envoy.extensions.filters.http.bandwidth_limit.v3.BandwidthLimit",
		"envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit",
		"envoy.type.v3.TokenBucket",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		wrong := func(check validate.CheckName, path xds.Path, message, help string) {
			p.Report(validate.Finding{Check: check, Path: n.Path().Join(path), Message: message, Help: help})
		}
		switch m := n.Message.(type) {
		case *routev3.RateLimit:
			if n.Field() == "envoy.extensions.filters.network.thrift_proxy.v3.RouteAction.rate_limits" {
				checkThriftActions(m, wrong)
			}
		case *bandwidthv3.BandwidthLimit:
			if facts.IsPerRoute(n) && m.GetLimitKbps() == nil {
				wrong("no-limit", "", "bandwidth_limit of a route has no limit_kbps", "set limit_kbps")
			}
		case *localratev3.LocalRateLimit:
			if facts.IsPerRoute(n) && m.GetTokenBucket() == nil {
				wrong("no-limit", "", "local_ratelimit of a route has no token_bucket", "set token_bucket")
			}
			switch {
			case m.GetLocalClusterRateLimit() == nil:
			case m.GetLocalRateLimitPerDownstreamConnection():
				wrong("local-cluster", "local_rate_limit_per_downstream_connection",
					"both local_rate_limit_per_downstream_connection and local_cluster_rate_limit are set", facts.KeepOne)
			case p.BootstrapFacts.Given() && p.BootstrapFacts.LocalCluster() == "":
				wrong("local-cluster", "local_cluster_rate_limit", "local_cluster_rate_limit needs a "+
					"local cluster", "set cluster_manager.local_cluster_name in the bootstrap")
			}
		case *typev3.TokenBucket:
			if d := m.GetFillInterval().AsDuration(); d > 0 && d < 50*time.Millisecond && fillsLocally(n) {
				p.Report(validate.Finding{
					Check:   "fill-interval",
					Path:    n.Path().Field("fill_interval"),
					Message: fmt.Sprintf("fill_interval %s is below the minimum of 50ms", d),
					Help:    "write at least 50ms, and raise tokens_per_fill",
					Warning: d < time.Millisecond && n.Field() != bucketOfDescriptor,
				})
			}
		}
	},
}

func checkThriftActions(m *routev3.RateLimit, wrong func(check validate.CheckName, path xds.Path, message, help string)) {
	for i, action := range m.GetActions() {
		switch action.GetActionSpecifier().(type) {
		case nil, // reported by field-constraint
			*routev3.RateLimit_Action_SourceCluster_,
			*routev3.RateLimit_Action_DestinationCluster_,
			*routev3.RateLimit_Action_RequestHeaders_,
			*routev3.RateLimit_Action_RemoteAddress_,
			*routev3.RateLimit_Action_GenericKey_,
			*routev3.RateLimit_Action_HeaderValueMatch_,
			*routev3.RateLimit_Action_DynamicMetadata: // deprecated-field reports it
		default:
			wrong("thrift-action", xds.Path("actions").Index(i), "thrift_proxy does not "+
				"support this action", "use generic_key, request_headers, header_value_match, remote_address, source_cluster or destination_cluster")
		}
	}
}

const bucketOfDescriptor protoreflect.FullName = "envoy.extensions.common.ratelimit.v3.LocalRateLimitDescriptor.token_bucket"

// fillsLocally reports whether the token bucket at the node is one of a local rate limit filter.
func fillsLocally(n *xds.Node) bool {
	switch n.Field() {
	case bucketOfDescriptor,
		"envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit.token_bucket",
		"envoy.extensions.filters.listener.local_ratelimit.v3.LocalRateLimit.token_bucket",
		"envoy.extensions.filters.network.local_ratelimit.v3.LocalRateLimit.token_bucket":
		return true
	}
	return false
}
