package notify

import (
	"time"

	"golang.org/x/sys/unix"
)

// rescan schedules rescans. A rescan of a large tree takes long and usually finds nothing. Idle rescans are
// delayed so that they use at most a thousandth of a core, up to maxRescan. A rescan is for the goroutine of
// Run, except for idle.
type rescan struct {
	every time.Duration // below 0 means never
	timer *time.Timer
	used  func() time.Duration // the processor time of this process
	began time.Duration        // processor time at the start of the last rescan
	idle  chan struct{}        // receives after an idle rescan
}

const (
	// rescanShare is the inverse of the share of a core for idle rescans.
	rescanShare = 2000
	// maxRescan is the longest interval between rescans that their cost can cause.
	maxRescan = 15 * time.Minute
)

func newRescan(every time.Duration) rescan {
	r := rescan{every: every, timer: time.NewTimer(0), used: processorTime, idle: make(chan struct{}, 1)}
	r.timer.Stop()
	return r
}

// begin records the start of a rescan, and schedules the next one.
func (r *rescan) begin() {
	r.began = r.used()
	if r.every > 0 {
		r.timer.Reset(r.every)
	}
}

// foundNothing delays the next rescan in proportion to the cost of the last one.
func (r *rescan) foundNothing() {
	if wait := min(rescanShare*(r.used()-r.began), maxRescan); r.every > 0 && wait > r.every {
		r.timer.Reset(wait)
	}
}

// FoundNothing tells the Watcher that the reader found no change after a Rescan signal. The more processor
// time the rescan took, the later the next one. FoundNothing is safe for concurrent use.
func (w *Watcher) FoundNothing() {
	select {
	case w.rescan.idle <- struct{}{}:
	default:
	}
}

// processorTime returns the processor time of this process.
func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
