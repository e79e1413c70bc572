package notify

import (
	"time"

	"golang.org/x/sys/unix"
)

// rescan schedules rescans. A rescan of a large tree takes long and usually finds nothing. After a rescan that
// found nothing, the next one is so late that rescans use 1/rescanShare of a core, but at most maxRescan later.
// Only the goroutine of Run uses a rescan, except for idle.
type rescan struct {
	every time.Duration // below 0 means never
	timer *time.Timer
	used  func() time.Duration // the processor time of this process
	began time.Duration        // processor time at the start of the last rescan
	idle  chan struct{}        // FoundNothing sends
}

const (
	// rescanShare is the ratio of the wait after a rescan that found nothing to the processor time of the
	// rescan.
	rescanShare = 2000
	// maxRescan is the longest interval that foundNothing sets.
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

// foundNothing delays the next rescan in proportion to the processor time since the last one began.
func (r *rescan) foundNothing() {
	if wait := min(rescanShare*(r.used()-r.began), maxRescan); r.every > 0 && wait > r.every {
		r.timer.Reset(wait)
	}
}

// FoundNothing tells the Watcher that the reader found no change after a Rescan signal. The Watcher then delays
// the next rescan in proportion to the processor time of this one, by 15 minutes at most. FoundNothing is safe
// for concurrent use.
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
