package cache

import (
	"context"
	"slices"
	"strings"
	"time"

	"xdspub/validate/transition"
	"xdspub/xds"
)

// fetches returns the time after which the client is sent a rejected response once more, because the client may
// accept the response later: Envoy has begun to fetch the code of a filter. fetches returns 0 if not, or if that
// would be too late for the quorum.
func (s *Stream) fetches(sub *subscription, r *response) time.Duration {
	if r.foreign || r.state != s.view.current.Load() || !untilFetched(sub.last.nack) {
		return 0
	}
	within := defaultTimeout
	if s.wait != nil {
		within = time.Until(s.wait.until)
	}
	pause := sub.nack.offers.Pause(within)
	if sub.nack.retries = pause > 0; sub.nack.retries {
		sub.nack.again = time.Now().Add(pause)
	}
	return pause
}

// untilFetched reports whether each resource that a client means by its refusal may be accepted later.
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

// reasonOf returns what the message of a NACK says of a resource: Envoy writes the name and the reason of each
// listener and cluster, and of other types the reason alone.
func reasonOf(r *xds.Resource, message string) string {
	if _, reason, ok := strings.Cut(message, plain(r.Name)+": "); ok {
		return reason
	}
	return message
}
