package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// target is a listener that requests go to.
type target struct {
	name string
	port atomic.Int64
}

// traffic is requests to listeners, until it is stopped.
type traffic struct {
	targets []*target
	out     atomic.Int64 // the generation that was published last

	end     chan struct{}
	running sync.WaitGroup

	mu       sync.Mutex
	once     tally // on connections for one request
	kept     tally // on connections that are kept alive
	failures []string
}

// tally sums up requests.
type tally struct {
	took    []time.Duration // of those that were answered as they should
	drained int             // of these, answers of a listener or filter chain of before
	failed  int
	// crossed are those that a close of their idle connection crossed, and that
	// Envoy has not seen. No server can keep that from happening; a client sends
	// such a request again (RFC 9112, 9.3.1), which is why it is no failure.
	crossed int
}

// asked returns how many requests there were.
func (s *tally) asked() int { return len(s.took) + s.failed + s.crossed }

// quantile returns the time within which that part of the requests was answered.
func (s *tally) quantile(q float64) time.Duration {
	if len(s.took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.took))
	return sorted[int(q*float64(len(sorted)-1))]
}

// lead sends clients to the listeners of generation n from now on.
func (t *traffic) lead(n int, doors []door) {
	if t.targets == nil {
		for _, d := range doors {
			t.targets = append(t.targets, &target{name: d.name})
		}
	}
	for i, d := range doors {
		t.targets[i].port.Store(int64(d.port))
	}
	t.out.Store(int64(n))
}

// begin starts the clients of all targets: with five of them, 100 requests a second
// on new connections and 100 on such as are kept alive. Most of the latter are idle
// for so long that some of them get to the end of a drain: of an answer on what
// drains, Envoy lets the next one be the last the more likely the longer it has
// drained.
func (t *traffic) begin() {
	t.end = make(chan struct{})
	for _, to := range t.targets {
		t.clients(10, to, 500*time.Millisecond, &t.once, false)
		t.clients(6, to, 500*time.Millisecond, &t.kept, true)
		t.clients(24, to, 3*time.Second, &t.kept, true)
	}
}

// clients starts n clients of a target, each at a moment of its own.
func (t *traffic) clients(n int, to *target, period time.Duration, sum *tally, keep bool) {
	for range n {
		due := time.Now().Add(rand.N(period))
		t.running.Go(func() { t.client(to, due, period, sum, keep) })
	}
}

// stop ends all clients, each after the request that it is at.
func (t *traffic) stop() {
	close(t.end)
	t.running.Wait()
}

// client sends a request each period. When it is late it leaves none out, and the
// time that a request takes is from when it was due.
func (t *traffic) client(to *target, due time.Time, period time.Duration, sum *tally, keep bool) {
	var c *connection
	defer func() { c.close() }()
	for ; ; due = due.Add(period) {
		if c.idle(due) {
			c.close()
			c = nil
		}
		select {
		case <-time.After(time.Until(due)): // where there was no connection to wait on
		case <-t.end:
			return
		}
		var err error
		out := int(t.out.Load()) // before Envoy sees the request
		if c == nil {
			c, err = dial(int(to.port.Load()))
		}
		if err == nil {
			err = c.exchange(keep)
		}
		t.count(sum, to, c, out, time.Since(due), err)
		if c != nil && (c.closing || !keep) {
			c.close()
			c = nil
		}
	}
}

// asked returns how many requests on new connections there were so far.
func (t *traffic) asked() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.once.asked()
}

// count takes down a request that was sent when generation out was published.
func (t *traffic) count(sum *tally, to *target, c *connection, out int, took time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, crossed := errors.AsType[*crossedError](err)
	switch {
	case err == nil:
		sum.took = append(sum.took, took)
		if to.name == "passing" || to.name == "stays" {
			out-- // the one serves two generations, the other all
		}
		if c.generation < out {
			sum.drained++
		}
		return
	case crossed:
		sum.crossed++
	default:
		sum.failed++
	}
	how := "a new connection"
	if c != nil && c.answered > 0 {
		how = fmt.Sprintf("request %d of a connection to generation %d", c.answered+1, c.generation)
	}
	t.failures = append(t.failures, fmt.Sprintf("%s after generation %d, %s, %s: %v", time.Now().Format("15:04:05.000"), t.out.Load(), to.name, how, err))
}

// worst returns the first failures.
func (t *traffic) worst() string {
	const most = 20
	list := t.failures
	if len(list) > most {
		list = append(slices.Clone(list[:most]), fmt.Sprintf("and %d more", len(t.failures)-most))
	}
	return strings.Join(list, "\n")
}
