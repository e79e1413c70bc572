package notify

import (
	"time"

	"golang.org/x/sys/unix"
)

// rescan says when to rescan. A rescan of a large tree takes long, and mostly finds nothing:
// such rescans take half a thousandth of a core at most, as far as that does not put them off for too
// long: with the first rescans, which find more, an idle watch takes a thousandth. It belongs to the goroutine of Run, but for idle.
type rescan struct {
	every time.Duration // below 0 is never
	timer *time.Timer
	used  func() time.Duration // the processor time of this process
	began time.Duration        // what it was when the last rescan began
	idle  chan struct{}        // the last rescan found nothing
}

const (
	// rescanShare is the part of a core that rescans take which find nothing: one in so many.
	rescanShare = 2000
	// maxRescan is the longest that their cost puts rescans off.
	maxRescan = 15 * time.Minute
)

func newRescan(every time.Duration) rescan {
	r := rescan{every: every, timer: time.NewTimer(0), used: processorTime, idle: make(chan struct{}, 1)}
	r.timer.Stop()
	return r
}

// begin notes that a rescan begins, and says when the next one does.
func (r *rescan) begin() {
	r.began = r.used()
	if r.every > 0 {
		r.timer.Reset(r.every)
	}
}

// foundNothing puts the next rescan off by what the last one has cost.
func (r *rescan) foundNothing() {
	if wait := min(rescanShare*(r.used()-r.began), maxRescan); r.every > 0 && wait > r.every {
		r.timer.Reset(wait)
	}
}

// FoundNothing tells the Watcher that its reader has read the tree after the signal Rescan and
// found nothing new. The more processor time that took, the later the next rescan comes. It may
// be called from any goroutine.
func (w *Watcher) FoundNothing() {
	select {
	case w.rescan.idle <- struct{}{}:
	default:
	}
}

// processorTime is what this process has used so far.
func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
