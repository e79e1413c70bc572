package notify

import "time"

// debouncer turns bursts of events into single firings. A burst fires after quiet without an event, or after
// maxDelay. A burst that is one complete change of one path fires after the settling time. A debouncer is for
// one goroutine.
type debouncer struct {
	quiet, maxDelay time.Duration
	timer           *time.Timer
	at              time.Time // when the burst fires; zero after held has made it fire again
	deadline        time.Time // when the burst fires at the latest; zero without a burst
	path            string    // the only path in the burst; empty for several paths
}

// settling is how long a complete change of one file waits for another change. A user who changes several
// files has usually begun the next one by then.
const settling = 5 * time.Millisecond

func newDebouncer(quiet, maxDelay time.Duration) *debouncer {
	d := &debouncer{quiet: quiet, maxDelay: maxDelay, timer: time.NewTimer(0)}
	d.timer.Stop()
	return d
}

// event begins or prolongs a burst. path is the changed path; empty if unknown.
func (d *debouncer) event(path string) {
	switch {
	case !d.running():
		d.deadline, d.path = time.Now().Add(d.maxDelay), path
	case d.path != path:
		d.path = ""
	}
	d.after(d.quiet)
}

// finish tells the debouncer that the change of a path is complete. If the burst is about that path only, it
// fires after the settling time.
func (d *debouncer) finish(path string) {
	if d.running() && d.path == path {
		d.after(min(d.quiet, settling))
	}
}

// again makes the burst fire again at once, unless an event prolongs it.
func (d *debouncer) again() { d.after(0) }

// held reports whether the burst has fired much later than planned. The machine is then busy, and the reader of
// events may be late too, so held makes the burst fire once more. The second time held returns false.
func (d *debouncer) held() bool {
	if d.at.IsZero() || time.Since(d.at) <= settling {
		return false
	}
	d.after(settling)
	d.at = time.Time{}
	return true
}

// after makes the burst fire after a duration, or at its deadline if that is earlier.
func (d *debouncer) after(wait time.Duration) {
	wait = min(wait, time.Until(d.deadline))
	d.at = time.Now().Add(wait)
	d.timer.Reset(wait)
}

// fire returns the channel that receives when the burst fires. The receiver then ends the burst by end, or
// prolongs it.
func (d *debouncer) fire() <-chan time.Time { return d.timer.C }

func (d *debouncer) end() {
	d.deadline = time.Time{}
	d.timer.Stop() // an event may have come after the firing
}

func (d *debouncer) running() bool { return !d.deadline.IsZero() }

// overdue reports whether the deadline of the burst has come, so that nothing may prolong the burst.
func (d *debouncer) overdue() bool { return !time.Now().Before(d.deadline) }
