package notify

import (
	"xdspub/event"
	"xdspub/internal/crash"
)

// errorQueue receives errors from a channel at once and buffers them. fsnotify sends an error while holding
// its lock, and the receiver also adds and removes watches, which need the lock. Without the buffer both
// would wait forever.
type errorQueue struct {
	out  chan error
	done chan struct{}
}

// newErrorQueue receives from in until in is closed; wait waits for that.
func newErrorQueue(in <-chan error, log *event.Log) *errorQueue {
	q := &errorQueue{out: make(chan error), done: make(chan struct{})}
	go crash.Again(q.done, func() { q.pass(in) }, log.Crashed)() // fsnotify would hang without a receiver
	return q
}

// pass passes errors on until in is closed, and then closes done.
func (q *errorQueue) pass(in <-chan error) {
	var waiting []error
	for {
		var out chan error // nil while the queue is empty
		var next error
		if len(waiting) > 0 {
			out, next = q.out, waiting[0]
		}
		select {
		case err, ok := <-in:
			if !ok {
				close(q.done)
				return
			}
			waiting = append(waiting, err)
		case out <- next:
			waiting = waiting[1:]
		}
	}
}

func (q *errorQueue) wait() { <-q.done }
