package envoy

import "context"

// Heartbeat is an Envoy's answer to a cheap question: which process answers. The uptime would be cheaper, but does
// not distinguish two processes that start within a second.
type Heartbeat struct {
	URL string
	// Err is the reason for a missing answer.
	Err         error
	incarnation Incarnation
}

// Same reports whether two answers came from one process of an Envoy.
func (h Heartbeat) Same(other Heartbeat) bool {
	return h.Err == nil && other.Err == nil && h.incarnation == other.incarnation
}

// Heartbeats asks each Envoy once, concurrently. It logs each Envoy that stops answering, or answers again.
func (f *Fleet) Heartbeats(ctx context.Context) []Heartbeat {
	beats := sideBySide(f.o.Admins, func(a *Admin) Heartbeat {
		s := a.session()
		defer s.close()
		incarnation, _, err := s.bootstrap(ctx)
		return Heartbeat{URL: a.url, Err: err, incarnation: incarnation}
	})
	for i, b := range beats {
		if ctx.Err() == nil && (b.Err == nil || Unreachable(b.Err)) {
			f.note(f.o.Admins[i], b.Err)
		}
	}
	return beats
}
