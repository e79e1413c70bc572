package cache

import (
	"context"
	"slices"
	"strings"
	"time"

	"xdspub/validate/transition"
	"xdspub/xds"
)

// scheduleFetchRetry schedules a retry of a rejected response, because Envoy may accept the response after
// fetching the code of a filter, and returns the pause until then. scheduleFetchRetry returns 0 if Envoy
// fetches no code, or if the pause would end after the wait for the quorum.
func (s *Stream) scheduleFetchRetry(sub *subscription, r *response) time.Duration {
	if r.foreign || r.state != s.view.current.Load() || !untilFetched(sub.last.nack) {
		return 0
	}
	within := defaultTimeout
	if s.wait != nil && !s.wait.late() {
		within = time.Until(s.wait.until)
	}
	pause := sub.nack.offers.Pause(within)
	if sub.nack.retries = pause > 0; sub.nack.retries {
		sub.nack.again = time.Now().Add(pause)
	}
	return pause
}

// untilFetched reports whether Envoy may accept the changed resources that its NACK means, when Envoy has
// fetched their code.
func untilFetched(r *refusal) bool {
	meant := r.meant()
	some := false
	for _, is := range r.changed {
		if !slices.Contains(meant, is.Name) {
			continue
		}
		if !transition.UntilFetched(context.Background(), is, reasonOf(is, r.message)) {
			return false
		}
		some = true
	}
	return some
}

// reasonOf returns the part of a NACK's message about a resource. For listeners and clusters Envoy writes
// each name with its reason, for other types only the reason.
func reasonOf(r *xds.Resource, message string) string {
	if _, reason, ok := strings.Cut(message, plain(r.Name)+": "); ok {
		return reason
	}
	return message
}
