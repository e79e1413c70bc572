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

// tally counts requests.
type tally struct {
	took    []time.Duration // of requests with the right answer
	drained int             // the requests of took that a draining listener or filter chain answered
	failed  int
	// crossed counts requests that Envoy did not see, because it closed the idle connection at this moment. No
	// server can prevent that, and a client sends such a request again (RFC 9112, 9.3.1). So it is no failure.
	crossed int
}

// asked returns the number of requests.
func (s *tally) asked() int { return len(s.took) + s.failed + s.crossed }

// quantile returns the time within which a part q of the requests was answered.
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

// begin starts the clients of all targets: with five targets, 100 requests a second on new connections, and 100 on
// old connections. Most old connections are idle for so long that some of them last to the end of a drain: the
// longer a listener drains, the more likely Envoy closes a connection after an answer.
func (t *traffic) begin() {
	t.end = make(chan struct{})
	for _, to := range t.targets {
		t.clients(10, to, 500*time.Millisecond, &t.once, false)
		t.clients(6, to, 500*time.Millisecond, &t.kept, true)
		t.clients(24, to, 3*time.Second, &t.kept, true)
	}
}

// clients starts n clients of a target, at random times within a period.
func (t *traffic) clients(n int, to *target, period time.Duration, sum *tally, keep bool) {
	for range n {
		due := time.Now().Add(rand.N(period))
		t.running.Go(func() { t.client(to, due, period, sum, keep) })
	}
}

// stop ends all clients, each after its present request.
func (t *traffic) stop() {
	close(t.end)
	t.running.Wait()
}

// client sends a request each period. A late client leaves no request out. The time of a request begins when the
// request was due.
func (t *traffic) client(to *target, due time.Time, period time.Duration, sum *tally, keep bool) {
	var c *connection
	defer func() { c.close() }()
	for ; ; due = due.Add(period) {
		if c.idle(due) {
			c.close()
			c = nil
		}
		select {
		case <-time.After(time.Until(due)): // waits if there is no connection
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

// asked returns the number of requests on new connections so far.
func (t *traffic) asked() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.once.asked()
}

// count counts a request that was sent when generation out was published.
func (t *traffic) count(sum *tally, to *target, c *connection, out int, took time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, crossed := errors.AsType[*crossedError](err)
	switch {
	case err == nil:
		sum.took = append(sum.took, took)
		if to.name == "passing" || to.name == "stays" {
			out-- // passing serves two generations, stays all
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
