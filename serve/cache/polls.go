package cache

import (
	"container/list"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/xds/clients"
	"xdspub/xds/params"
)

const (
	// mostPolled is the largest number of REST requests in polls, mostPolledOfClient the largest number of
	// one client. polls forgets the oldest requests first.
	mostPolled         = 10_000
	mostPolledOfClient = 1000
	// silentFor is the time without a request after which a REST client counts as gone. Envoy repeats
	// requests within two refresh_delay.
	silentFor = 2 * time.Minute
)

// polls tracks REST clients. Without a stream, only silence shows that a REST client has left.
type polls struct {
	registry *registry

	mu      sync.Mutex
	clients map[string]*list.Element // of a *poller
	recent  list.List                // of *poller, by last request
	count   int                      // number of questions
	bytes   int                      // memory of the questions
}

// poller is a REST client.
type poller struct {
	clients.Client // without Subscriptions
	key            string
	questions      map[string]*polled
	last           time.Time // time of the last request
}

// nameless reports whether the client has no node id, like curl. Such a client is not shown or counted.
func (c *poller) nameless() bool { return c.Node == "" }

// with calls f with the state of a request, and logs a refusal that f finds. with returns the result of f. f
// runs with the lock held.
func (ps *polls) with(p *Poll, f func(*polled) (refused bool)) (refused bool) {
	ps.mu.Lock()
	c := ps.client(p)
	is := ps.question(c, p.Question)
	is.view, is.params = p.view, p.params
	if refused = f(is); !refused && !is.rejects() {
		ps.updateBytes(c, is)
		ps.mu.Unlock()
		return false
	}
	r, now := is.refusal, is.view.current.Load()
	named := *r
	ps.mu.Unlock()
	// Finding a position may parse a large file, so release the lock.
	named.changed = named.inState(now)
	found := named.findings(fmt.Sprintf("client %q", c.Node), &ps.registry.places)
	ps.mu.Lock()
	r.found = found
	if is.rejects() {
		is.reportRejection(&named, found, now)
	}
	if c.questions[p.Key] == is { // otherwise the request was forgotten
		ps.updateBytes(c, is)
	}
	ps.mu.Unlock()
	if refused {
		line := event.ResponseRejected{Node: c.Node, Type: r.of.API, Version: r.version, Error: r.message}
		ps.registry.recordRejection(rejecting{line.Node, line.Type}, line.Version, line)
	}
	return refused
}

// byView returns the requests by the views that answer them.
func (ps *polls) byView() map[*view][]*polled {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	by := make(map[*view][]*polled)
	for _, e := range ps.clients {
		for _, is := range e.Value.(*poller).questions {
			by[is.view] = append(by[is.view], is)
		}
	}
	return by
}

// parametersOf returns the dynamic parameters of a request.
func (ps *polls) parametersOf(q *polled) params.Parameters {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return q.params
}

// move sets the view of requests. to may be nil if the list is empty.
func (ps *polls) move(list []*polled, to *view) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, is := range list {
		is.view = to
	}
}

// client returns the client of a request, and moves the client to the end of recent. The caller holds the
// lock.
func (ps *polls) client(q *Poll) *poller {
	now := time.Now()
	if e := ps.clients[q.Client]; e != nil {
		ps.recent.MoveToBack(e)
		c := e.Value.(*poller)
		c.last = now
		return c
	}
	ps.sweep(now)
	c := &poller{key: q.Client, questions: make(map[string]*polled, 1), last: now, Client: clients.Client{
		Node: diag.Clip(q.Node.GetId(), diag.MaxWord), Cluster: diag.Clip(q.Node.GetCluster(), diag.MaxWord), UserAgent: userAgent(q.Node),
		Address: q.Address, Kind: string(REST), Parameters: q.params, Since: now.UTC().Round(0),
	}}
	ps.clients[q.Client] = ps.recent.PushBack(c)
	ps.registry.mu.Lock()
	defer ps.registry.mu.Unlock()
	ps.registry.removeGone(c.Client)
	return c
}

// question returns the state of a client's request, and creates the state if necessary. The caller holds the
// lock.
func (ps *polls) question(c *poller, q Question) *polled {
	is := c.questions[q.Key]
	if is == nil {
		if len(c.questions) >= mostPolledOfClient {
			ps.forgetOldest(c)
		}
		for ps.count >= mostPolled && ps.recent.Front().Value != c {
			ps.leave(ps.recent.Front())
		}
		is = &polled{client: &c.Client, of: q.Type, names: firstNames(q.Names), asked: len(q.Names), all: q.All, since: c.last}
		c.questions[q.Key] = is
		ps.count++
	}
	is.last = c.last
	return is
}

// forgetOldest forgets the oldest request of a client. The caller holds the lock.
func (ps *polls) forgetOldest(c *poller) {
	var oldest string
	var at time.Time
	for key, is := range c.questions {
		if at.IsZero() || is.last.Before(at) {
			oldest, at = key, is.last
		}
	}
	ps.uncount(c.questions[oldest])
	delete(c.questions, oldest)
}

// uncount removes a request from the counts.
func (ps *polls) uncount(is *polled) {
	is.withdraw()
	ps.count--
	ps.bytes -= is.bytes
	is.bytes = 0
}

// updateBytes updates the byte count of a request. If the total is too large, updateBytes forgets the oldest requests,
// except the current one.
func (ps *polls) updateBytes(c *poller, is *polled) {
	now := bytesOf(c.Client) + heldByShown + bytesOfNames(is.names)
	for key, value := range is.params {
		now += heldByParameter + len(key) + len(value)
	}
	if r := is.refusal; r != nil {
		now += len(r.message) + bytesOfFindings(r.found)
	}
	ps.bytes += now - is.bytes
	is.bytes = now
	for ps.bytes > mostPolledBytes {
		if first := ps.recent.Front(); first.Value != c {
			ps.leave(first)
		} else if len(c.questions) > 1 {
			ps.forgetOldest(c)
		} else {
			break
		}
	}
}

// sweep removes clients without a request for silentFor.
func (ps *polls) sweep(now time.Time) {
	for e := ps.recent.Front(); e != nil && now.Sub(e.Value.(*poller).last) > silentFor; e = ps.recent.Front() {
		ps.leave(e)
	}
}

// leave moves a client to the clients that are gone.
func (ps *polls) leave(e *list.Element) {
	c := ps.recent.Remove(e).(*poller)
	delete(ps.clients, c.key)
	had := ps.subscriptions(c)
	for _, is := range c.questions {
		ps.uncount(is)
	}
	clear(c.questions) // a running request may still refer to one
	if c.nameless() {
		return
	}
	ps.registry.mu.Lock()
	defer ps.registry.mu.Unlock()
	ps.registry.addGone(c.Client, c.last, had)
}

// list returns the clients with a node id that have sent a request within silentFor.
func (ps *polls) list() []clients.Client {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.sweep(time.Now())
	all := make([]clients.Client, 0, len(ps.clients))
	for e := ps.recent.Front(); e != nil; e = e.Next() {
		c := e.Value.(*poller)
		if c.nameless() {
			continue
		}
		is := c.Client
		is.Subscriptions = ps.subscriptions(c)
		all = append(all, is)
	}
	return all
}

func (ps *polls) subscriptions(c *poller) []clients.Subscription {
	list := make([]clients.Subscription, 0, len(c.questions))
	for _, key := range slices.Sorted(maps.Keys(c.questions)) {
		list = append(list, c.questions[key].status())
	}
	return merged([]clients.Subscription{}, list)
}

// release forgets the last answers, so that clients get refused resources again.
func (ps *polls) release() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, e := range ps.clients {
		for _, is := range e.Value.(*poller).questions {
			is.sent = nil
		}
	}
}
