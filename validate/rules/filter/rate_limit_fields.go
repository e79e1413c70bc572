package filter

import (
	"fmt"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/xds"
)

var rateLimitFields = &validate.Rule{
	Code: "rate-limit-fields",
	Doc: `A filter's rate limit has fields that only a route's rate limit supports.

Routes, virtual hosts and the filters ratelimit and local_ratelimit use the same message for
rate limits, and support different fields of it. Envoy rejects stage and disable_key in a
filter ("'stage' field and 'disable_key' field are not supported"), limit in local_ratelimit
("'limit' field is not supported"), and hits_addend in a filter unless it has exactly one of
number and format. It does not check hits_addend on a route.`,
	Messages: []protoreflect.FullName{"envoy.config.route.v3.RateLimit"},
	Node: func(p *validate.Pass, n *xds.Node) {
		m := n.Message.(*routev3.RateLimit)
		local := n.Field() == "envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit.rate_limits"
		switch n.Field() {
		case "envoy.extensions.filters.http.ratelimit.v3.RateLimit.rate_limits", "envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute.rate_limits":
		default:
			if !local {
				return
			}
		}
		unsupported := func(field string) {
			p.Report(validate.Finding{
				Path:    n.Path().Field(field),
				Message: fmt.Sprintf("a filter's rate limit does not support %s", field),
				Help:    "remove it; the rate_limits of a route support it",
			})
		}
		if m.GetStage() != nil {
			unsupported("stage")
		}
		if m.GetDisableKey() != "" {
			unsupported("disable_key")
		}
		if local && m.GetLimit() != nil {
			unsupported("limit")
		}
		if hits := m.GetHitsAddend(); hits != nil && (hits.GetFormat() == "") == (hits.GetNumber() == nil) {
			p.Report(validate.Finding{
				Path:    n.Path().Field("hits_addend"),
				Message: "hits_addend needs exactly one of number and format",
				Help:    "set number, or format with one command",
			})
		}
	},
}
