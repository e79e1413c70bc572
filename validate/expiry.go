package validate

import (
	"sync/atomic"
	"time"

	"xdspub/xds"
)

// expiryKey is the key under which a resource caches its expiry: an *atomic.Pointer[time.Time].
type expiryKey struct{}

// Expires records when a certificate of the judged resource expires, for Expiry. The resource caches the first such
// moment, because a Judge does not judge a resource twice.
func (p *Pass) Expires(moment time.Time) {
	first := p.Resource.Kept(expiryKey{}, func() any { return new(atomic.Pointer[time.Time]) }).(*atomic.Pointer[time.Time])
	for {
		known := first.Load()
		if known != nil && !moment.Before(*known) || first.CompareAndSwap(known, &moment) {
			return
		}
	}
}

// Expiry returns the first moment at which a certificate of a judged Snapshot expires; zero if no rule has found a
// certificate.
func Expiry(s *xds.Snapshot) (first time.Time) {
	for _, t := range xds.Types {
		for _, r := range s.Of(t) {
			if cached, ok := r.IfKept(expiryKey{}); ok {
				if at := cached.(*atomic.Pointer[time.Time]).Load(); at != nil && (first.IsZero() || at.Before(first)) {
					first = *at
				}
			}
		}
	}
	return first
}
