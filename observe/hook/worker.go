package hook

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"xdspub/event"
	"xdspub/internal/crash"
)

// receiver is what a hook passes events to.
type receiver interface {
	// send passes an event on. The error is a *retryError if the receiver may take the event later.
	send(context.Context, item) error
	// failed returns the event about a failure.
	failed(err error, lost int) event.Event
	// String returns a name without secrets.
	String() string
}

// retryError means that an event can be sent again.
type retryError struct {
	err   error
	after time.Duration // the pause that the receiver asks for; 0 for none
}

func (e *retryError) Error() string { return e.err.Error() }

func (e *retryError) Unwrap() error { return e.err }

// errFull means that a queue has dropped events.
var errFull = fmt.Errorf("more than %d events, or %d MiB, wait: the oldest are dropped", mostQueued, mostQueuedBytes>>20)

// worker passes the events of one hook on, one after the other.
type worker struct {
	selection
	receiver receiver
	queue    queue
	times    Times
	closing  <-chan struct{}
	log      *event.Log

	said    time.Time // when failed last wrote an event
	failing bool      // the last event that was written says that the hook fails
	lost    int       // lost events that no event has told
	err     error     // the last failure
}

// run passes events on until the Hooks are closed and the queue is empty, or ctx ends.
func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		i, ok := w.queue.take()
		if ok {
			w.deliver(ctx, i)
			continue
		}
		if w.isClosing() {
			break
		}
		select {
		case <-w.queue.more:
		case <-w.closing:
		}
	}
	w.lost += w.queue.clear() + w.queue.takeDropped()
	if w.lost > 0 {
		if w.err == nil {
			w.err = errors.New("xdspub ends")
		}
		w.log.Write(w.receiver.failed(w.err, w.lost))
	}
}

func (w *worker) isClosing() bool {
	select {
	case <-w.closing:
		return true
	default:
		return false
	}
}

// deliver passes an event on. If the receiver fails for a time, deliver sends the event again, with growing pauses.
// Once the Hooks are closed, a failure ends all further deliveries.
func (w *worker) deliver(ctx context.Context, i item) {
	began, pause := time.Now(), w.times.LeastBackoff
	for {
		last := w.isClosing()
		err := w.send(ctx, i)
		if n := w.queue.takeDropped(); n > 0 {
			w.fail(errFull, n)
		}
		if err == nil {
			w.succeed()
			return
		}
		var retry *retryError
		if !errors.As(err, &retry) {
			w.fail(err, 1)
			return
		}
		if last || ctx.Err() != nil {
			w.fail(err, 1+w.queue.clear())
			return
		}
		if time.Since(began) > w.times.GiveUp {
			w.fail(err, 1)
			return
		}
		w.fail(err, 0)
		timer := time.NewTimer(min(max(pause, retry.after), w.times.MostBackoff) + rand.N(pause/4+1))
		select {
		case <-timer.C:
		case <-w.closing:
			timer.Stop()
		}
		pause = min(2*pause, w.times.MostBackoff)
	}
}

// send sends an event once. A panic is an error, and an event.
func (w *worker) send(ctx context.Context, i item) error {
	err := func() (err error) {
		defer crash.Catch(&err)
		return w.receiver.send(ctx, i)
	}()
	if e, ok := errors.AsType[*crash.Error](err); ok {
		w.log.Crashed(e)
	}
	return err
}

// fail counts lost events, and writes an event unless one was written a short time ago.
func (w *worker) fail(err error, lost int) {
	w.err, w.lost = err, w.lost+lost
	if time.Since(w.said) < w.times.Report {
		return
	}
	w.log.Write(w.receiver.failed(err, w.lost))
	w.said, w.failing, w.lost = time.Now(), true, 0
}

// succeed writes an event if the last event of this hook was a failure.
func (w *worker) succeed() {
	if w.failing {
		w.log.Write(event.HookRecovered{Hook: w.receiver.String(), Lost: w.lost})
		w.failing, w.lost = false, 0
	}
}
