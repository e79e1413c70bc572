package hook

import "sync"

const (
	// mostQueued and mostQueuedBytes bound the events in a queue.
	mostQueued      = 1000
	mostQueuedBytes = 4 << 20
)

// item is an event in a queue.
type item struct {
	id   string // differs from the ids of all other events
	name string
	json []byte // the line without its end
}

// queue holds events until a hook takes them. A full queue drops the oldest events, because the newest say how things
// are.
type queue struct {
	more chan struct{} // receives a value after each add

	mu      sync.Mutex
	items   []item
	bytes   int
	dropped int // not reported yet
}

// add adds an event.
func (q *queue) add(i item) {
	q.mu.Lock()
	q.items = append(q.items, i)
	q.bytes += len(i.json)
	for len(q.items) > mostQueued || q.bytes > mostQueuedBytes {
		q.bytes -= len(q.items[0].json)
		q.items[0] = item{} // the array must not hold the text
		q.items = q.items[1:]
		q.dropped++
	}
	q.mu.Unlock()
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// take removes the oldest event; not ok if the queue is empty.
func (q *queue) take() (i item, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return item{}, false
	}
	i = q.items[0]
	q.items[0] = item{}
	q.items = q.items[1:]
	q.bytes -= len(i.json)
	return i, true
}

// takeDropped returns how many events the queue has dropped since the last call.
func (q *queue) takeDropped() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.dropped
	q.dropped = 0
	return n
}

// clear removes all events, and returns how many.
func (q *queue) clear() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.items)
	q.items, q.bytes = nil, 0
	return n
}
