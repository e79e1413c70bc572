package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/xds"
	"xdspub/xds/clients"
	"xdspub/xds/quorum"
)

// Confirmation says how clients confirm a Snapshot.
type Confirmation struct {
	// Quorum is how many of the connected clients that the Snapshot concerns must acknowledge it.
	Quorum quorum.Quorum
	// Timeout is how long Confirm waits for the clients; 0 means 15s. A client without an answer by then has
	// not rejected the Snapshot.
	Timeout time.Duration
}

// defaultTimeout is the default Timeout. Without a confirmation, defaultTimeout is also how long the server
// sends a client a rejected response again while the client fetches code.
const defaultTimeout = 15 * time.Second

// Answers summarizes the answers of the clients that a Snapshot concerns.
type Answers struct {
	// Concerned is the number of clients that the Snapshot concerns, without clients that have disconnected
	// before their answer. Acknowledged and Rejected count the answers.
	Concerned, Acknowledged, Rejected int
	// Confirmed means that the quorum has acknowledged the Snapshot, or that the Snapshot concerns no client.
	Confirmed bool
	// Refused means that too many clients have rejected the Snapshot for the quorum. TakenBack means that the
	// Cache serves the Snapshot before again. The first Snapshot is never taken back.
	Refused, TakenBack bool
	// Unchanged means that the Cache served the Snapshot already, so that Confirm has asked no client.
	Unchanged bool
	// Findings say which resources clients have rejected and why. Clients with the same reason share a
	// finding. There are at most 100 findings.
	Findings diag.List
}

// Confirm publishes a Snapshot like Publish, and waits until the quorum of clients has acknowledged the
// Snapshot, the quorum can no longer be met, or the Timeout is over. If the quorum can't be met, Confirm
// publishes the Snapshot before again. If ctx ends during the wait, Confirm returns its error, and the Cache
// keeps serving the Snapshot. Confirm of the served Snapshot asks no client.
func (c *Cache) Confirm(ctx context.Context, s *xds.Snapshot, o Confirmation) (Answers, error) {
	within := cmp.Or(o.Timeout, defaultTimeout)
	w := newWait(c.registry.polls, within)
	before, changed, err := c.publish(ctx, s, w)
	if err != nil || !changed {
		return Answers{Unchanged: err == nil}, err
	}
	late := false
	defer func() {
		if !late {
			w.end()
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, within, errTimeout)
	defer cancel()
	answers := w.await(ctx, o.Quorum)
	if err := context.Cause(ctx); err != nil && err != errTimeout {
		return answers, err
	}
	if answers.Refused && before != nil {
		err = c.takeBack(ctx, before, w)
		answers.TakenBack = err == nil
	}
	c.logAnswers(answers, w.silent())
	if late = !answers.Confirmed && !answers.Refused; late {
		c.keep(w, o.Quorum)
	}
	return answers, err
}

// lateWait is a wait whose Timeout is over.
type lateWait struct {
	*wait
	quorum quorum.Quorum
	ctx    context.Context // ends with the next Publish
	cancel context.CancelFunc
}

// keep lets clients answer to a wait until the next Publish.
func (c *Cache) keep(w *wait, q quorum.Quorum) {
	late := &lateWait{wait: w, quorum: q}
	late.ctx, late.cancel = context.WithCancel(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLate()
	c.late = late
}

// endLate ends the late wait. The caller holds the lock.
func (c *Cache) endLate() {
	if c.late != nil {
		c.late.cancel()
		c.late.end()
		c.late = nil
	}
}

// AwaitLate waits for the quorum that the last Confirm missed, and returns the answers. AwaitLate returns at once
// without such a Confirm, and when the next Publish begins; the Answers are then not Confirmed.
func (c *Cache) AwaitLate() Answers {
	c.mu.Lock()
	late := c.late
	c.mu.Unlock()
	if late == nil {
		return Answers{}
	}
	answers := late.await(late.ctx, late.quorum)
	if answers.Confirmed {
		c.logAnswers(answers, nil)
	}
	return answers
}

// takeBack serves the Snapshot before again. takeBack first retires the resources of the rejected Snapshot,
// because listeners and routes of clients that accepted the Snapshot may use them. When these clients have
// gone back, or ctx ends, takeBack removes the rejected resources, because clients that reject them would
// reject every response with them.
func (c *Cache) takeBack(ctx context.Context, before *xds.Snapshot, refused *wait) error {
	back := newWait(refused.polls, 0)
	defer back.end()
	if _, _, err := c.publish(context.WithoutCancel(ctx), before, back); err != nil {
		return err
	}
	back.await(ctx, quorum.Quorum{})
	c.mu.Lock()
	defer c.mu.Unlock()
	var next []*turn
	for _, of := range c.classes {
		var gone []xds.Key
		for _, key := range refused.rejected() {
			if _, ok := of.retired[key]; ok {
				gone = append(gone, key)
			}
		}
		next = append(next, of.turnWithout(gone))
	}
	return c.serve(context.WithoutCancel(ctx), next, nil)
}

var errTimeout = errors.New("the clients have not answered in time")

// mostNames is the largest number of silent nodes in a log line.
const mostNames = 5

func (c *Cache) logAnswers(a Answers, silent []string) {
	switch log := c.options.Log; {
	case a.Refused:
		log.Write(event.SnapshotRefused{Clients: a.Concerned, Rejected: a.Rejected, TakenBack: a.TakenBack})
	case a.Concerned == 0:
	case !a.Confirmed:
		log.Write(event.SnapshotUnconfirmed{Clients: a.Concerned, Acknowledged: a.Acknowledged, Silent: diag.Few(silent, mostNames)})
	default:
		log.Write(event.SnapshotConfirmed{Clients: a.Concerned, Acknowledged: a.Acknowledged})
	}
}

// wait collects the answers of clients to a Snapshot.
type wait struct {
	changed chan struct{} // buffers one signal
	until   time.Time     // end of Confirm's wait; retries must end before
	polls   *polls        // of the REST clients, which also answer

	mu       sync.Mutex
	clients  map[*clients.Client]*tally
	streams  map[*Stream]struct{} // streams without an answer
	refusals map[string]*blame    // by words
	keys     map[xds.Key]bool     // resources that a client rejected
}

// tally counts the answers of one client, by its streams or REST requests.
type tally struct {
	pending  int  // expected answers
	answered bool // at least once
	rejected bool // at least once
}

// blame is a finding and the clients with this finding.
type blame struct {
	finding diag.Diagnostic
	clients map[*clients.Client]struct{}
}

func newWait(ps *polls, within time.Duration) *wait {
	return &wait{
		changed: make(chan struct{}, 1), until: time.Now().Add(within), polls: ps,
		clients: make(map[*clients.Client]*tally), streams: make(map[*Stream]struct{}),
		refusals: make(map[string]*blame), keys: make(map[xds.Key]bool),
	}
}

// late reports whether the Timeout of Confirm is over.
func (w *wait) late() bool { return time.Now().After(w.until) }

// expect adds one expected answer of a client. s is the client's stream, nil for REST.
func (w *wait) expect(c *clients.Client, s *Stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.clients[c] == nil {
		w.clients[c] = &tally{}
	}
	w.clients[c].pending++
	if s != nil {
		w.streams[s] = struct{}{}
	}
}

// answer records an answer of a client: a refusal with its findings, or nil for an ACK.
func (w *wait) answer(c *clients.Client, s *Stream, r *refusal, found diag.List) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.removeExpected(c, s)
	t.answered = true
	if r == nil {
		return
	}
	t.rejected = true
	for _, name := range r.meant() {
		w.keys[xds.Key{Type: r.of, Name: plain(name)}] = true
	}
	for _, d := range found {
		w.addFinding(c, d, fmt.Sprintf("%s %q: %s", d.Resource.Type, d.Resource.Name, r.reason()))
	}
}

// mostFindings is the largest number of findings in Answers.
const mostFindings = 100

// addFinding adds a finding of a client. Clients with the same words share a finding. addFinding ignores
// findings above mostFindings.
func (w *wait) addFinding(c *clients.Client, d diag.Diagnostic, words string) {
	b := w.refusals[words]
	if b == nil {
		if len(w.refusals) >= mostFindings {
			return
		}
		b = &blame{finding: d, clients: make(map[*clients.Client]struct{})}
		w.refusals[words] = b
	}
	b.clients[c] = struct{}{}
}

// withdraw removes an expected answer that will not come, and a client without any answer.
func (w *wait) withdraw(c *clients.Client, s *Stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.removeExpected(c, s); t.pending == 0 && !t.answered {
		delete(w.clients, c)
	}
}

// removeExpected removes an expected answer, wakes await, and returns the client's tally. The caller holds
// the lock.
func (w *wait) removeExpected(c *clients.Client, s *Stream) *tally {
	delete(w.streams, s)
	t := w.clients[c]
	t.pending--
	select {
	case w.changed <- struct{}{}:
	default:
	}
	return t
}

// await waits until the quorum is decided or ctx ends, and returns the answers so far. Without a concerned
// client the quorum is met.
func (w *wait) await(ctx context.Context, q quorum.Quorum) Answers {
	for {
		a := w.count()
		need := q.Of(a.Concerned)
		a.Refused = a.Concerned > 0 && a.Concerned-a.Rejected < need
		a.Confirmed = !a.Refused && a.Acknowledged >= need
		if a.Refused || a.Confirmed {
			return a
		}
		select {
		case <-w.changed:
		case <-ctx.Done():
			return a
		}
	}
}

// count returns the answers so far. count doesn't set Confirmed, Refused and TakenBack.
func (w *wait) count() Answers {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := Answers{Concerned: len(w.clients)}
	for _, t := range w.clients {
		switch {
		case t.rejected:
			a.Rejected++
		case t.pending == 0:
			a.Acknowledged++
		}
	}
	for _, b := range w.refusals {
		d := b.finding
		if more := len(b.clients) - 1; more > 0 {
			d.Message += fmt.Sprintf(" (and %s)", diag.Count(more, "more client"))
		}
		a.Findings = append(a.Findings, d)
	}
	a.Findings = a.Findings.Sort()
	return a
}

// rejected returns the resources that clients rejected.
func (w *wait) rejected() []xds.Key {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.keys))
}

// silent returns the nodes of the clients without an answer, sorted.
func (w *wait) silent() (nodes []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c, t := range w.clients {
		if t.pending > 0 && !t.rejected {
			nodes = append(nodes, c.Node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// end removes the wait from all streams and polls.
func (w *wait) end() {
	w.mu.Lock()
	var open []*Stream
	for s := range w.streams {
		open = append(open, s)
	}
	w.mu.Unlock()
	w.polls.forgetWait(w)
	for _, s := range open {
		s.mu.Lock()
		if s.wait == w {
			s.wait = nil
		}
		s.mu.Unlock()
	}
}

// confirm makes a stream report to a wait if the current state concerns its client. A request may already
// have got the state: then confirm reports the client's rejection at once, and the next push its ACK.
func (s *Stream) confirm(w *wait) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.load()
	if s.gone || !s.concerned(now) {
		return
	}
	w.expect(&s.client.Client, s)
	s.wait, s.waitFrom = w, now.number
	for _, sub := range s.subscriptions {
		s.reportRejection(sub)
	}
}

// concerned reports whether the client may subscribe to a resource that a state has changed.
func (s *Stream) concerned(now *state) bool {
	for t, sub := range s.subscriptions {
		changed := now.changed(t)
		if slices.ContainsFunc(changed, sub.subscribes) || t == xds.VirtualHost && len(changed)*len(sub.names) > 0 {
			return true // the subscription may use an alias of a virtual host
		}
	}
	return false
}

// changed returns the names of the resources of a type that a state has changed.
func (s *state) changed(t *xds.Type) []string { return s.changedFrom(s.number, t) }

// changedFrom returns the names of the resources of a type that the states from a number up to s have changed; all
// names if the changes are unknown.
func (s *state) changedFrom(number int, t *xds.Type) (names []string) {
	if n := s.number - number + 1; n > 0 && n <= len(s.changes) {
		for _, c := range s.changes[len(s.changes)-n:] {
			names = append(names, c[t]...)
		}
		return names
	}
	for _, r := range s.Of(t) {
		names = append(names, r.Name)
	}
	return names
}

// reportRejection reports a rejection to the wait if the client rejected a resource that the state of the wait, or a
// later state, has changed. A client may also repeat an older rejection, which is not an answer to these states.
func (s *Stream) reportRejection(sub *subscription) {
	r, now := sub.last.nack, s.view.current.Load()
	if s.wait == nil || r == nil || r.state < s.waitFrom {
		return
	}
	changed := setOf(now.changedFrom(s.waitFrom, sub.of))
	if slices.ContainsFunc(r.meant(), func(name string) bool { return changed[name] }) {
		s.wait.answer(&s.client.Client, s, r, s.findings(r))
		s.wait = nil
	}
}

// reportAck reports an acknowledgement to the wait if the client has acknowledged all changes of the state of the wait,
// and of later states, which a Retry or a Trim makes.
func (s *Stream) reportAck(now *state) {
	if s.wait == nil {
		return
	}
	for t, sub := range s.subscriptions {
		if len(now.changedFrom(s.waitFrom, t)) > 0 && (sub.waits() || s.response(sub, now) != nil) {
			return
		}
	}
	s.wait.answer(&s.client.Client, s, nil, nil)
	s.wait = nil
}
