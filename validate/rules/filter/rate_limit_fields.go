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

Routes, virtual hosts and the filters ratelimit and local_ratelimit describe rate
limits by the same message, and read it differently. Envoy refuses stage and
disable_key in a filter ("'stage' field and 'disable_key' field are not
supported"), limit in local_ratelimit ("'limit' field is not supported"), and a
hits_addend there with both a number and a format or with neither. Of a route it
does not look at hits_addend.`,
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
				Message: fmt.Sprintf("a filter's rate limit can't have %s", field),
				Help:    "remove it; the rate_limits of a route have it",
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
				Message: "hits_addend has not exactly one of number and format",
				Help:    "set number, or format with one command",
			})
		}
	},
}
