package notify

// errorQueue takes errors from a channel at once, and keeps them until they are
// fetched. fsnotify hands one over with its lock held, and who fetches it also makes
// and removes watches, which wants that lock: each would wait for the other for ever.
type errorQueue struct {
	out  chan error
	done chan struct{}
}

// newErrorQueue takes from in until that is closed; wait waits for that.
func newErrorQueue(in <-chan error) *errorQueue {
	q := &errorQueue{out: make(chan error), done: make(chan struct{})}
	go func() {
		defer close(q.done)
		var waiting []error
		for {
			var out chan error // nil while there is nothing to give
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
