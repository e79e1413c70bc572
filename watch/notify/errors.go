package notify

// errorQueue receives errors from a channel at once and buffers them. fsnotify sends an error while holding
// its lock, and the receiver also adds and removes watches, which need the lock. Without the buffer both
// would wait forever.
type errorQueue struct {
	out  chan error
	done chan struct{}
}

// newErrorQueue receives from in until in is closed; wait waits for that.
func newErrorQueue(in <-chan error) *errorQueue {
	q := &errorQueue{out: make(chan error), done: make(chan struct{})}
	go func() {
		defer close(q.done)
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
					return
				}
				waiting = append(waiting, err)
			case out <- next:
				waiting = waiting[1:]
			}
		}
	}()
	return q
}

func (q *errorQueue) wait() { <-q.done }
