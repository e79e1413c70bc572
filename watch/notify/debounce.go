package notify

import "time"

// debouncer turns bursts of events into single firings: a burst fires when no
// event came for the quiet time, or when it has lasted for maxDelay. A burst that is one
// whole change of one path fires after the settling time. It belongs to one goroutine.
type debouncer struct {
	quiet, maxDelay time.Duration
	timer           *time.Timer
	at              time.Time // when the burst fires; zero where it may be late
	deadline        time.Time // when it fires at the latest; zero without one
	path            string    // what the burst is about; empty where that is several paths
}

// settling is how long a whole change of one file waits for a second one: somebody who
// changes several has mostly begun with the next one by then.
const settling = 5 * time.Millisecond

func newDebouncer(quiet, maxDelay time.Duration) *debouncer {
	d := &debouncer{quiet: quiet, maxDelay: maxDelay, timer: time.NewTimer(0)}
	d.timer.Stop()
	return d
}

// event begins or prolongs a burst. path is what changed; empty where that is not known.
func (d *debouncer) event(path string) {
	switch {
	case !d.running():
		d.deadline, d.path = time.Now().Add(d.maxDelay), path
	case d.path != path:
		d.path = ""
	}
	d.after(d.quiet)
}

// finish says that the change of a path is whole, as far as its writer is concerned.
func (d *debouncer) finish(path string) {
	if d.running() && d.path == path {
		d.after(min(d.quiet, settling))
	}
}

// again has the burst fire once more at once, unless an event prolongs it.
func (d *debouncer) again() { d.after(0) }

// held reports whether the burst fires much later than it should, as on a machine that is busy: so
// may have been held up who reads the events. It has the burst fire once more, and once only.
func (d *debouncer) held() bool {
	if d.at.IsZero() || time.Since(d.at) <= settling {
		return false
	}
	d.after(settling)
	d.at = time.Time{}
	return true
}

// after has the burst fire after a time.
func (d *debouncer) after(wait time.Duration) {
	wait = min(wait, time.Until(d.deadline))
	d.at = time.Now().Add(wait)
	d.timer.Reset(wait)
}

// fire delivers once a burst; who receives calls end, unless an event has
// prolonged it.
func (d *debouncer) fire() <-chan time.Time { return d.timer.C }

func (d *debouncer) end() {
	d.deadline = time.Time{}
	d.timer.Stop() // an event may have come since it fired
}

func (d *debouncer) running() bool { return !d.deadline.IsZero() }

// overdue reports whether the burst must not be prolonged any more.
func (d *debouncer) overdue() bool { return !time.Now().Before(d.deadline) }
