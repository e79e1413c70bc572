// Package turns shares the processors among clients.
//
//	all := turns.New(1)
//	client := all.Client("192.0.2.1")
//	turn, err := client.Take(ctx)
//	… // a few milliseconds of work for the client
//	turn.Give()
//
// Go schedules goroutines without regard to clients: a client with a thousand busy goroutines delays all
// others. So work for a client takes a turn first. The number of simultaneous turns is fixed, and the next
// turn goes to the client that has used the least processor time. Work with a turn must not block, neither on
// a client nor on another turn.
//
// The order is start-time fair queueing (Goyal, Vin and Cheng, 1996).
package turns

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"
)

// Turns are the turns of all clients. Turns is safe for concurrent use.
type Turns struct {
	most int // largest value of taken

	mu      sync.Mutex
	taken   int               // open turns
	clients map[string]*state // by name
	forget  int               // with more clients, giveNext removes idle clients
	waiting queue
	// now is the virtual time: the time that the client of the last turn had used before the turn.
	now time.Duration
	// arrivals counts the clients that began to wait.
	arrivals int
}

// New returns Turns with at most this number of simultaneous turns.
func New(most int) *Turns { return &Turns{most: most, clients: make(map[string]*state)} }

// state is the state of a client.
type state struct {
	used    time.Duration   // the virtual time up to which the client has used the processors
	taken   int             // open turns
	waiting []chan struct{} // giveNext closes the first channel when its turn comes
	arrival int             // Turns.arrivals when the client began to wait
	place   int             // in the queue
}

// Client is a client of Turns. A nil Client never waits.
type Client struct {
	of   *Turns
	name string
}

// Client returns the client with a name. Clients with the same name share their turns.
func (t *Turns) Client(name string) *Client { return &Client{t, name} }

type contextKey struct{}

// With returns a context with a client.
func With(ctx context.Context, c *Client) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// Of returns the client of a context; nil if the context has none.
func Of(ctx context.Context) *Client {
	c, _ := ctx.Value(contextKey{}).(*Client)
	return c
}

// Turn is a turn of a client. The Turn of a nil Client is nil.
type Turn struct {
	of    *Turns
	state *state
	began time.Time
}

// Take waits for a turn. If ctx ends first, Take returns the cause of ctx.
func (c *Client) Take(ctx context.Context) (*Turn, error) {
	if c == nil {
		return nil, nil
	}
	t := c.of
	t.mu.Lock()
	s := t.clients[c.name]
	if s == nil {
		s = &state{used: t.now}
		t.clients[c.name] = s
	}
	if t.taken < t.most {
		t.taken++
		s.taken++
		t.mu.Unlock()
		return &Turn{t, s, time.Now()}, nil
	}
	comes := make(chan struct{})
	s.waiting = append(s.waiting, comes)
	if len(s.waiting) == 1 {
		s.used = max(s.used, t.now)
		s.arrival = t.arrivals
		t.arrivals++
		heap.Push(&t.waiting, s)
	}
	t.mu.Unlock()
	select {
	case <-comes:
		return &Turn{t, s, time.Now()}, nil
	case <-ctx.Done():
		t.cancelWait(s, comes)
		return nil, context.Cause(ctx)
	}
}

// cancelWait ends a client's wait for a turn. If the turn has already come, cancelWait passes the turn on.
func (t *Turns) cancelWait(s *state, comes chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	place := slices.Index(s.waiting, comes)
	if place < 0 {
		s.taken--
		t.passOn()
		return
	}
	if s.waiting = slices.Delete(s.waiting, place, place+1); len(s.waiting) == 0 {
		heap.Remove(&t.waiting, s.place)
	}
}

// Give ends the turn. Call Give exactly once. Give on a nil Turn does nothing.
func (turn *Turn) Give() {
	if turn == nil {
		return
	}
	t, s := turn.of, turn.state
	t.mu.Lock()
	defer t.mu.Unlock()
	s.used = max(s.used, t.now) + time.Since(turn.began)
	s.taken--
	if len(s.waiting) > 0 {
		heap.Fix(&t.waiting, s.place)
	}
	t.passOn()
}

// passOn passes a returned turn to the next waiting client. The caller holds the lock.
func (t *Turns) passOn() {
	if len(t.waiting) > 0 {
		t.giveNext()
		return
	}
	if t.taken--; t.taken == 0 {
		clear(t.clients) // without waiting clients the order is irrelevant
	}
}

// giveNext gives a turn to the waiting client that has used the least time. The caller holds the lock.
func (t *Turns) giveNext() {
	s := t.waiting[0]
	t.now = s.used
	s.taken++
	close(s.waiting[0])
	if s.waiting = s.waiting[1:]; len(s.waiting) == 0 {
		s.waiting = nil
		heap.Pop(&t.waiting)
	}
	if len(t.clients) > t.forget {
		for name, s := range t.clients {
			if s.taken == 0 && len(s.waiting) == 0 && s.used <= t.now {
				delete(t.clients, name)
			}
		}
		t.forget = 2*len(t.clients) + 100
	}
}

// queue is a heap of waiting clients.
type queue []*state

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].used, q[j].used), cmp.Compare(q[i].arrival, q[j].arrival)) < 0
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	s := x.(*state)
	s.place = len(*q)
	*q = append(*q, s)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
