package watch

import "time"

// debouncer turns bursts of events into single firings: a burst fires when no
// event came for the quiet time, or when it has lasted for maxDelay. It belongs to
// one goroutine.
type debouncer struct {
	quiet, maxDelay time.Duration
	timer           *time.Timer
	deadline        time.Time // when the burst fires at the latest; zero without one
}

func newDebouncer(quiet, maxDelay time.Duration) *debouncer {
	d := &debouncer{quiet: quiet, maxDelay: maxDelay, timer: time.NewTimer(0)}
	d.timer.Stop()
	return d
}

func (d *debouncer) event() {
	now := time.Now()
	if !d.running() {
		d.deadline = now.Add(d.maxDelay)
	}
	d.timer.Reset(min(d.quiet, d.deadline.Sub(now)))
}

// fire delivers once a burst; who receives calls end, unless an event has
// prolonged it.
func (d *debouncer) fire() <-chan time.Time { return d.timer.C }

func (d *debouncer) end() {
	d.deadline = time.Time{}
	d.timer.Stop() // an event may have come since it fired
}

func (d *debouncer) running() bool { return !d.deadline.IsZero() }

// overdue tells whether the burst must not be prolonged any more.
func (d *debouncer) overdue() bool { return !time.Now().Before(d.deadline) }
