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

Envoy refuses a back-off whose max_interval is shorter than its base_interval, in
whole milliseconds ("retry_policy.max_interval must greater than or equal to the
base_interval"), even in a virtual host all of whose routes have retry policies
of their own. A word in retry_on that it does not know it leaves out with a
warning ("Unknown retry_on policy token(s)"): nothing is retried for it.`,
	Messages: []protoreflect.FullName{"envoy.config.route.v3.RetryPolicy"},
	Node: func(p *validate.Pass, n *xds.Node) {
		m := n.Message.(*routev3.RetryPolicy)
		checkBackOff(p, n, m.GetRetryBackOff())
		for _, word := range strings.Split(m.GetRetryOn(), ",") {
			word = strings.TrimSpace(word)
			if word != "" && !slices.Contains(p.Envoy.RetryReasons(), word) && !facts.IsUnread(n) {
				p.Report(validate.Finding{
					Path:    n.Path().Field("retry_on"),
					Message: fmt.Sprintf("retry_on %q is unknown: Envoy ignores it", word),
					Help:    "words are separated by commas; one of " + strings.Join(p.Envoy.RetryReasons(), ", "),
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
	// Envoy counts whole milliseconds, at least one.
	base, most := max(1, m.GetBaseInterval().AsDuration().Milliseconds()), max(1, m.GetMaxInterval().AsDuration().Milliseconds())
	if most < base && !facts.IsUnread(n) {
		p.Report(validate.Finding{
			Path:    n.Path().Field("retry_back_off").Field("max_interval"),
			Message: fmt.Sprintf("max_interval %s is below base_interval %s", facts.DurationText(m.GetMaxInterval()), facts.DurationText(m.GetBaseInterval())),
			Help:    "give a max_interval of at least base_interval; without one it is ten times as long",
		})
	}
}
