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
	// mostPolled is how many questions of clients by REST are known, mostPolledOfClient how many of
	// one client. Of more of them, those are forgotten that were asked the longest ago.
	mostPolled         = 10_000
	mostPolledOfClient = 1000
	// silentFor is how long a client by REST may not ask until it counts as gone. Envoy asks again
	// within two refresh_delay.
	silentFor = 2 * time.Minute
)

// polls knows the clients that ask by REST. They have no stream whose end would say that they are
// gone.
type polls struct {
	registry *registry

	mu      sync.Mutex
	clients map[string]*list.Element // of a *poller
	recent  list.List                // of *poller, the one that asked last at the end
	count   int                      // of questions
	bytes   int                      // of questions
}

// poller is a client that asks by REST.
type poller struct {
	clients.Client // without Subscriptions
	key            string
	questions      map[string]*polled
	last           time.Time // when it asked last
}

// nameless reports whether the client is nobody's node, such as curl. It has asked, and that is all.
func (c *poller) nameless() bool { return c.Node == "" }

// with calls f with what is known of a question, and logs what f finds that the client refuses.
func (ps *polls) with(p *Poll, f func(*polled) (refused bool)) (refused bool) {
	ps.mu.Lock()
	c := ps.client(p)
	is := ps.question(c, p.Question)
	is.view, is.params = p.view, p.params
	if refused = f(is); !refused && !is.rejects() {
		ps.weighs(c, is)
		ps.mu.Unlock()
		return false
	}
	r, now := is.refusal, is.view.current.Load()
	named := *r
	ps.mu.Unlock()
	// To look for a place may mean to parse a large file: nobody else waits for that.
	named.changed = named.inState(now)
	found := named.findings(fmt.Sprintf("client %q", c.Node), &ps.registry.places)
	ps.mu.Lock()
	r.found = found
	if is.rejects() {
		is.rejected(&named, found, now)
	}
	if c.questions[p.Key] == is { // else it was forgotten
		ps.weighs(c, is)
	}
	ps.mu.Unlock()
	if refused {
		line := event.ResponseRejected{Node: c.Node, Type: r.of.API, Version: r.version, Error: r.message}
		ps.registry.rejected(rejecting{line.Node, line.Type}, line.Version, line)
	}
	return refused
}

// byView returns the questions of clients by the views that answer them.
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

// parametersOf returns the dynamic parameters of the last request that asked a question.
func (ps *polls) parametersOf(q *polled) params.Parameters {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return q.params
}

// move makes a view the one that answers questions.
func (ps *polls) move(list []*polled, to *view) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, is := range list {
		is.view = to
	}
}

// client returns the client of a question, as the one that asked last.
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
	ps.registry.back(c.Client)
	return c
}

// question returns what is known of a question of a client.
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

// forgetOldest forgets the question of a client that was asked the longest ago.
func (ps *polls) forgetOldest(c *poller) {
	var oldest string
	var at time.Time
	for key, is := range c.questions {
		if at.IsZero() || is.last.Before(at) {
			oldest, at = key, is.last
		}
	}
	ps.ends(c.questions[oldest])
	delete(c.questions, oldest)
}

// ends takes down that a question is forgotten.
func (ps *polls) ends(is *polled) {
	is.ends()
	ps.count--
	ps.bytes -= is.bytes
	is.bytes = 0
}

// weighs takes down how many bytes a question of the client that asked last has. If all questions have too many, those are
// forgotten that were asked the longest ago.
func (ps *polls) weighs(c *poller, is *polled) {
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

// sweep makes those clients gone that have not asked for long.
func (ps *polls) sweep(now time.Time) {
	for e := ps.recent.Front(); e != nil && now.Sub(e.Value.(*poller).last) > silentFor; e = ps.recent.Front() {
		ps.leave(e)
	}
}

// leave makes a client one that is gone.
func (ps *polls) leave(e *list.Element) {
	c := ps.recent.Remove(e).(*poller)
	delete(ps.clients, c.key)
	had := ps.subscriptions(c)
	for _, is := range c.questions {
		ps.ends(is)
	}
	clear(c.questions) // a request that is being answered may know of one
	if c.nameless() {
		return
	}
	ps.registry.mu.Lock()
	defer ps.registry.mu.Unlock()
	ps.registry.went(c.Client, c.last, had)
}

// list returns the clients that are there.
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

// release forgets what clients refused, so that they get it once more.
func (ps *polls) release() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, e := range ps.clients {
		for _, is := range e.Value.(*poller).questions {
			is.sent = nil
		}
	}
}
