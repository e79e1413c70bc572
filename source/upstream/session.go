package upstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/internal/grpcdial"
	"xdspub/source/load"
	"xdspub/xds"
)

// session is a connection to a server.
type session struct {
	authority   *authority
	index       int // of the server in authority.servers
	options     *Options
	bounds      *bounds
	streamState *streamState
	wake        chan struct{} // full after a change in other authorities that concerns the session
	judged      chan load.Judgement
	end         context.CancelCauseFunc
	ended       chan struct{} // closed after the end
	whole       chan struct{} // closed once authority.takeOver has taken the resources
	requests    chan request  // to send
	answered    bool          // a response has come
	taken       bool          // whole is closed

	pending      []pending
	held         int       // the sum of the sizes of pending
	changed      time.Time // the first settleSoon since the last settle; zero for none
	quiet        *time.Timer
	due          *time.Timer           // a name counts as absent, or a TTL ends
	ignored      map[*xds.Type]bool    // types with a logged UpstreamIgnored
	lastReason   map[*xds.Type]string  // the reason of the last answer; empty for an ACK
	unsentChange map[*xds.Type]bool    // the next answer of the type also tells the server a change of the subscription
	refused      map[*xds.Type]pending // responses without an answer that repeat a refused response
	repeat       *time.Timer           // answers the responses of refused

	// Upstream.mu guards the fields below.
	refs           map[xds.Key]time.Time // names of other authorities to which the resources refer, and since when
	waitsForOthers bool                  // the server of a name of refs has not answered yet
	offers         map[xds.Key]bool      // while the session waits, its resources to which other authorities refer
}

// pending is a response without an answer.
type pending struct {
	of             *xds.Type
	nonce, version string
	names          map[string]bool
	n              uint64 // the number of the Contents with the response; 0 before
	size           int
}

// answer returns an ACK, or with a reason a NACK.
func (p pending) answer(reason string) request {
	return request{of: p.of, nonce: p.nonce, version: p.version, reason: reason}
}

func newSession(a *authority, i int) *session {
	u := a.upstream
	u.mu.Lock()
	defer u.mu.Unlock()
	s := &session{
		authority: a, index: i, options: &u.options, bounds: &u.bounds, wake: make(chan struct{}, 1),
		streamState: newStreamState(a, a.servers[i].secure(), a.entries),
		requests:    make(chan request, 4096), judged: make(chan load.Judgement, 1),
		ended: make(chan struct{}), whole: make(chan struct{}),
		ignored: make(map[*xds.Type]bool), lastReason: make(map[*xds.Type]string), unsentChange: make(map[*xds.Type]bool), refused: make(map[*xds.Type]pending),
	}
	a.sessions[s] = true
	return s
}

// start runs the session on a goroutine until ctx ends, or until end is called.
func (s *session) start(ctx context.Context) {
	of, end := context.WithCancelCause(ctx)
	s.end = end
	go crash.Guard(func() {
		defer close(s.ended)
		err := func() (err error) {
			defer crash.Catch(&err)
			return s.run(of)
		}()
		if e, ok := errors.AsType[*crash.Error](err); ok {
			s.options.Log.Crashed(e)
		}
		end(err)
		s.authority.endStreamState(s.streamState)
		s.authority.lost(ctx, s, err)
	}, s.options.Log.Crashed)()
}

// endLate ends the session after bounds.answerWithin, unless the timer is stopped.
func (s *session) endLate(why error) *time.Timer {
	return time.AfterFunc(s.bounds.answerWithin, crash.Guard(func() { s.end(why) }, s.options.Log.Crashed))
}

// run connects, and follows the server until the stream ends.
func (s *session) run(ctx context.Context) error {
	server := s.authority.servers[s.index]
	dialer, err := grpcdial.New(server.Address, "--upstream", server.TLS)
	if err != nil {
		return err
	}
	connected, disconnect := context.WithCancel(ctx)
	conn, err := dialer.Connect(connected, s.bounds.response)
	if err != nil {
		disconnect()
		return err
	}
	defer conn.Close()
	defer disconnect()
	late := s.endLate(fmt.Errorf("the server has not answered within %s", s.bounds.answerWithin))
	defer late.Stop()
	err = s.follow(ctx, newLink(conn, s.options), late)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !s.answered && dialer.Reason() != nil:
		return dialer.Reason()
	}
	return err
}

// follow subscribes, and handles responses until a stream ends. The first response stops the timer late.
func (s *session) follow(ctx context.Context, l *link, late *time.Timer) error {
	go crash.Guard(func() { s.transmit(ctx, l) }, func(e *crash.Error) { l.failed <- e })()
	s.quiet, s.due, s.repeat = time.NewTimer(time.Hour), time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	defer s.quiet.Stop()
	defer s.due.Stop()
	defer s.repeat.Stop()
	if err := s.subscribe(ctx); err != nil {
		return err
	}
	half := time.NewTimer(s.bounds.wholeWithin)
	defer half.Stop()
	for {
		from := l.received
		if s.held > s.bounds.pending {
			from = nil // the server must wait for answers
		}
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err = <-l.failed:
		case r := <-from:
			s.answered = true
			late.Stop()
			err = s.handle(ctx, r)
		case <-s.quiet.C:
			err = s.settle(ctx)
		case <-s.due.C:
			s.settleSoon()
		case <-s.repeat.C:
			err = s.refuseAgain(ctx)
		case <-s.wake:
			err = s.handleWake(ctx)
		case <-half.C:
			if missing, _ := s.streamState.missing(time.Now()); !s.taken && len(s.authority.servers) > 1 {
				err = fmt.Errorf("the server has not sent %s within %s", diag.Few(missing, 5), s.bounds.wholeWithin)
			}
		case j := <-s.judged:
			err = s.answer(ctx, j)
		}
		if err != nil {
			return err
		}
	}
}

// subscribe sends the changes of the subscriptions.
func (s *session) subscribe(ctx context.Context) error {
	s.streamState.wantedByOthers = s.authority.updateRefs(s)
	changes := s.streamState.follow(time.Now())
	s.streamState.wantedByOthers = s.authority.updateRefs(s) // follow may have dropped resources
	for _, c := range changes {
		r := request{of: c.of}
		if p, ok := s.refused[c.of]; ok {
			r = p.answer(s.lastReason[c.of])
			delete(s.refused, c.of)
		}
		r.subscribe, r.unsubscribe, r.wildcard = c.subscribe, c.unsubscribe, c.first && s.streamState.of(c.of).wildcard
		if !s.options.Transport.delta() && s.hasUnanswered(c.of) {
			r.deferred, s.unsentChange[c.of] = true, true
		}
		if err := s.send(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// handleWake handles a change in other authorities.
func (s *session) handleWake(ctx context.Context) error {
	before := s.streamState.wantedByOthers
	if err := s.subscribe(ctx); err != nil {
		return err
	}
	if s.authority.isWaiting(s) || !maps.Equal(before, s.streamState.wantedByOthers) {
		s.settleSoon()
	}
	return nil
}

// hasUnanswered reports whether the session has not answered a response of a type.
func (s *session) hasUnanswered(of *xds.Type) bool {
	return slices.ContainsFunc(s.pending, func(p pending) bool { return p.of == of })
}

// send queues a request. The queue is finite, so send may wait for the server to read.
func (s *session) send(ctx context.Context, r request) error {
	select {
	case s.requests <- r:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// transmit sends the queued requests until a stream or ctx ends. transmit ends the session if the server stops
// reading.
func (s *session) transmit(ctx context.Context, to *link) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-s.requests:
			late := s.endLate(fmt.Errorf("the server has read nothing for %s", s.bounds.answerWithin))
			err := to.send(ctx, r)
			late.Stop()
			if err != nil {
				return
			}
		}
	}
}

// large is the size in bytes of the resources of a response after which handle frees the garbage at once.
const large = 16 << 20

// handle handles a response.
func (s *session) handle(ctx context.Context, r response) error {
	t := xds.TypeOfURL(r.url)
	switch {
	case t == nil || s.streamState.types[t] == nil:
		return nobodyAsked(r.url)
	case r.nonce == "":
		return fmt.Errorf("the server sends a %s response without a nonce, which nobody can answer", t.API)
	}
	p := pending{of: t, nonce: r.nonce, version: r.version, names: make(map[string]bool), size: len(r.nonce) + len(r.version) + 256}
	for _, is := range r.resources {
		name := nameOf(t, is)
		p.names[name] = true
		p.size += len(name) + 64
	}
	is, err := s.streamState.apply(t, r, time.Now())
	if err != nil {
		return err
	}
	if len(is.unasked) > 0 && !s.ignored[t] {
		s.ignored[t] = true
		for i, name := range is.unasked {
			is.unasked[i] = diag.Printable(diag.Clip(name, diag.MaxWord))
		}
		s.options.Log.Write(event.UpstreamIgnored{Type: t.API, Resources: len(is.unasked), Names: is.unasked[:min(len(is.unasked), 20)]})
	}
	if !s.options.Transport.delta() {
		s.supersede(t)
		if !is.changed && s.lastReason[t] != "" {
			s.refuseLater(p)
			return nil
		}
	}
	if is.bytes > large {
		runtime.GC() // the judgement makes further copies of the resources
	}
	s.pending = append(s.pending, p)
	s.held += p.size
	if is.refs {
		if err := s.subscribe(ctx); err != nil {
			return err
		}
	}
	s.settleSoon()
	return nil
}

// supersede forgets the unanswered responses of a type after a newer response. By state of the world, a server ignores
// an answer to an older response.
func (s *session) supersede(t *xds.Type) {
	delete(s.refused, t)
	s.pending = slices.DeleteFunc(s.pending, func(p pending) bool {
		if p.of == t {
			s.held -= p.size
		}
		return p.of == t
	})
}

// refuseLater delays the NACK of a response that repeats a refused response. By state of the world, a server such as
// that of go-control-plane sends a refused response again when the NACK arrives.
func (s *session) refuseLater(p pending) {
	if len(s.refused) == 0 {
		s.repeat.Reset(s.bounds.repeatEvery)
	}
	s.refused[p.of] = p
}

// refuseAgain answers the responses that repeat a refused response: with the same NACK, or with an ACK if the resources
// have been accepted since.
func (s *session) refuseAgain(ctx context.Context) error {
	for t, p := range s.refused {
		delete(s.refused, t)
		if err := s.send(ctx, p.answer(s.lastReason[t])); err != nil {
			return err
		}
	}
	return nil
}

// settleSoon lets settle run once the server is silent, or after bounds.maxDelay.
func (s *session) settleSoon() {
	now := time.Now()
	if s.changed.IsZero() {
		s.changed = now
	}
	wait := s.options.QuietPeriod
	if missing, _ := s.streamState.missing(now); !s.taken && len(missing) == 0 {
		wait = max(wait, s.bounds.startQuiet)
	}
	if s.held > s.bounds.pending {
		wait = 0
	}
	s.quiet.Reset(max(0, min(wait, s.changed.Add(s.bounds.maxDelay).Sub(now))))
}

// settle passes the resources on to the Upstream if they are whole. Otherwise settle answers the responses: a server
// may wait for the answers before it sends the rest.
func (s *session) settle(ctx context.Context) error {
	s.changed = time.Time{}
	now := time.Now()
	refs, next := s.streamState.expire(now)
	if refs {
		if err := s.subscribe(ctx); err != nil {
			return err
		}
	}
	missing, absent := s.streamState.missing(now)
	awaited, late := s.authority.updateWaits(s, now)
	if missing = append(missing, awaited...); absent.IsZero() || !late.IsZero() && late.Before(absent) {
		absent = late
	}
	if next.IsZero() || !absent.IsZero() && absent.Before(next) {
		next = absent
	}
	if !next.IsZero() {
		s.due.Reset(max(0, next.Sub(now)))
	}
	if len(missing) > 0 || !s.answered {
		s.authority.recordMissing(missing)
		return s.answerPart(ctx)
	}
	n := s.authority.takeOver(s)
	for i := range s.pending {
		s.pending[i].n = n
	}
	if n > 0 && !s.taken {
		s.taken, s.streamState.before = true, nil
		close(s.whole)
	}
	return nil
}

// answerPart answers the responses of Contents that are not whole. answerPart also answers the responses of each type
// in unsentChange: the server needs the answer to learn the change of the subscription.
func (s *session) answerPart(ctx context.Context) error {
	answers := func(p pending) bool { return p.n == 0 || s.unsentChange[p.of] }
	if !slices.ContainsFunc(s.pending, answers) {
		return nil
	}
	findings, err := s.options.Judge(ctx, s.streamState.contents(true))
	if err != nil {
		return err
	}
	return s.reply(ctx, func(p pending) (bool, string) {
		if !answers(p) {
			return false, ""
		}
		own, _ := s.reasons(p, findings)
		return true, own
	})
}

// judge hands a judgement to the session. A judgement replaces an older judgement, which it includes.
func (s *session) judge(j load.Judgement) {
	select {
	case <-s.judged:
	default:
	}
	select {
	case s.judged <- j:
	default:
	}
}

// answer answers the responses of judged Contents.
func (s *session) answer(ctx context.Context, j load.Judgement) error {
	if j.Accepted {
		clear(s.lastReason)
	}
	return s.reply(ctx, func(p pending) (bool, string) {
		if p.n == 0 || p.n > j.N {
			return false, ""
		}
		own, others := s.reasons(p, j.Findings)
		switch {
		case j.Accepted, own == "" && slices.Contains(j.GoOn, p.of):
			return true, ""
		case own == "":
			return true, "nothing of this response is published, because of other resources: " + others
		}
		return true, own
	})
}

// mostReasons is the number of findings in a NACK.
const mostReasons = 5

// reasons returns the errors about the resources of a response, and all other errors, as text.
func (s *session) reasons(p pending, findings diag.List) (own, others string) {
	var mine, rest []string
	for _, d := range findings {
		if d.Severity != diag.Error {
			continue
		}
		d = d.Shown()
		of, name := s.about(d)
		text := fmt.Sprintf("%s [%s]", d.Message, d.Code)
		if name != "" {
			text = diag.Clip(name, diag.MaxWord) + ": " + text
		}
		if p.of == of && p.names[name] {
			mine = append(mine, text)
		} else {
			rest = append(rest, text)
		}
	}
	join := func(list []string) string {
		text := strings.Join(list[:min(len(list), mostReasons)], "; ")
		if n := len(list) - mostReasons; n > 0 {
			text += fmt.Sprintf("; and %d more", n)
		}
		return diag.Clip(text, diag.MaxText)
	}
	return join(mine), join(rest)
}

// about returns the resource that a finding is about; nil for none. A finding about a resource that can't be decoded
// has only the name of the file.
func (s *session) about(d diag.Diagnostic) (*xds.Type, string) {
	if d.Resource.Type != "" {
		return xds.TypeOfURL(d.Resource.Type), d.Resource.Name
	}
	below, _ := strings.CutPrefix(d.File, s.options.Name+"/")
	api, name, _ := strings.Cut(below, "/")
	return xds.TypeOfAPI(api), name
}

// reply sends an ACK or a NACK for each response that judge decides. A reason makes a NACK.
func (s *session) reply(ctx context.Context, judge func(pending) (decided bool, reason string)) error {
	var rest []pending
	for _, p := range s.pending {
		decided, reason := judge(p)
		if !decided {
			rest = append(rest, p)
			continue
		}
		s.held -= p.size
		if reason != "" && reason != s.lastReason[p.of] {
			s.options.Log.Write(event.UpstreamRefused{Type: p.of.API, Error: errors.New(reason)})
		}
		s.lastReason[p.of] = reason
		if err := s.send(ctx, p.answer(reason)); err != nil {
			return err
		}
	}
	s.pending = rest
	maps.DeleteFunc(s.unsentChange, func(of *xds.Type, _ bool) bool { return !s.hasUnanswered(of) })
	return nil
}
