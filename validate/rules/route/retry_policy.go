package route

import (
	"fmt"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var retryPolicy = &validate.Rule{
	Code: "retry-policy",
	Doc: `A retry policy has an invalid interval or an unknown condition.

Envoy rejects a retry_back_off whose max_interval is below its base_interval, in whole
milliseconds ("retry_policy.max_interval must greater than or equal to the base_interval"), even
in a virtual host whose routes all have their own retry policy. It ignores an unknown word in
retry_on and logs "Unknown retry_on policy token(s)": nothing is retried for it (a warning).`,
	Messages: []protoreflect.FullName{"envoy.config.route.v3.RetryPolicy"},
	Node: func(p *validate.Pass, n *xds.Node) {
		m := n.Message.(*routev3.RetryPolicy)
		checkBackOff(p, n, m.GetRetryBackOff())
		for _, word := range strings.Split(m.GetRetryOn(), ",") {
			word = strings.TrimSpace(word)
			if word != "" && !slices.Contains(p.Envoy.RetryReasons(), word) && !facts.IsUnread(n) {
				p.Report(validate.Finding{
					Path:    n.Path().Field("retry_on"),
					Message: fmt.Sprintf("unknown retry_on condition %q: Envoy ignores it", word),
					Help:    "separate conditions by commas; write one of " + strings.Join(p.Envoy.RetryReasons(), ", "),
					Warning: true,
				})
			}
		}
	},
}

func checkBackOff(p *validate.Pass, n *xds.Node, m *routev3.RetryPolicy_RetryBackOff) {
	if m.GetMaxInterval() == nil || !facts.InDurationRange(m.GetMaxInterval()) || !facts.InDurationRange(m.GetBaseInterval()) {
		return
	}
	// Envoy rounds down to milliseconds, and waits at least one.
	base, most := max(1, m.GetBaseInterval().AsDuration().Milliseconds()), max(1, m.GetMaxInterval().AsDuration().Milliseconds())
	if most < base && !facts.IsUnread(n) {
		p.Report(validate.Finding{
			Path:    n.Path().Field("retry_back_off").Field("max_interval"),
			Message: fmt.Sprintf("max_interval %s is below base_interval %s", facts.DurationText(m.GetMaxInterval()), facts.DurationText(m.GetBaseInterval())),
			Help:    "raise max_interval to at least base_interval, or remove it: the default is 10 times base_interval",
		})
	}
}
