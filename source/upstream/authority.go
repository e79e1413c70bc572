package upstream

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/source/load"
	"xdspub/xds"
)

// authority follows the servers of an xdstp authority. The authority with an empty name follows Options.Servers: the
// client asks them for all other names.
type authority struct {
	upstream *Upstream
	name     string // empty for Options.Servers
	servers  []Server
	wake     chan struct{} // full after the references of another authority have changed

	// Upstream.mu guards the fields below.

	part      *load.Contents // the last whole resources, without a number; nil before the first takeOver
	entries   map[xds.Key]*entry
	absent    map[xds.Key]bool      // names that the session of part subscribes to, and for which the server has no resource
	refs      map[xds.Key]time.Time // names of other authorities to which the resources of part refer, and since when
	current   *session              // the session of part; nil before the first takeOver, and after the end of the session
	sessions  map[*session]bool
	partState *streamState // the state of the session of part; nil before the first takeOver
	state     load.State
	began     time.Time // when state.Connected became true last
	outage    time.Time // when the last outage began, or when the authority became needed after the outage
	needs     bool      // the last result of needed
	errs      []error   // the last error of each server; nil for none
	missing   []string
}

func newAuthority(u *Upstream, name string, servers []Server) *authority {
	now := time.Now()
	return &authority{
		upstream: u, name: name, servers: servers, wake: make(chan struct{}, 1), errs: make([]error, len(servers)), sessions: make(map[*session]bool),
		state: load.State{Since: now}, outage: now,
	}
}

// run follows the servers until ctx ends. run connects once the authority is needed.
func (a *authority) run(ctx context.Context) {
	pause := a.upstream.bounds.leastPause
	defer a.setPartState(nil)
	for a.waitUntilNeeded(ctx) {
		for i := range a.servers {
			if a.follow(ctx, i) {
				pause = a.upstream.bounds.leastPause
				break // begin with the first server
			}
		}
		a.recordFailure()
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
		pause = min(2*pause, a.upstream.bounds.longestPause)
	}
}

// waitUntilNeeded waits until the authority is needed. waitUntilNeeded returns false after the end of ctx.
func (a *authority) waitUntilNeeded(ctx context.Context) bool {
	for ctx.Err() == nil {
		a.upstream.mu.Lock()
		needed := a.needed()
		a.upstream.mu.Unlock()
		if needed {
			return true
		}
		select {
		case <-ctx.Done():
		case <-a.wake:
		}
	}
	return false
}

// needed reports whether the client subscribes to a resource of the authority. The authority with an empty name is
// always needed, because the client subscribes to all its clusters and listeners.
func (a *authority) needed() bool { return a.name == "" || len(a.wanted()) > 0 }

// wanted returns the names of the authority to which the bootstrap and the resources of other authorities refer.
func (a *authority) wanted() map[xds.Key]bool {
	all := make(map[xds.Key]bool)
	add := func(refs map[xds.Key]time.Time) {
		for k := range refs {
			if a.upstream.owner(k.Name) == a {
				all[k] = true
			}
		}
	}
	for _, other := range a.upstream.authorities {
		if other == a {
			continue
		}
		add(other.refs)
		for s := range other.sessions {
			add(s.refs)
		}
	}
	for _, name := range a.upstream.options.Runtime {
		if a.name != "" && a.upstream.owner(name) == a {
			all[xds.Key{Type: xds.Runtime, Name: name}] = true
		}
	}
	return all
}

// follow follows a server until its stream ends. Meanwhile follow asks the earlier servers in turn, and changes to an
// earlier server once takeOver has taken the resources of that server. followed means that takeOver has taken the
// resources of a server.
func (a *authority) follow(ctx context.Context, i int) (followed bool) {
	s := newSession(a, i)
	s.start(ctx)
	var earlier *session // the session of an earlier server; nil for none
	var whole, failed <-chan struct{}
	failback := time.NewTicker(a.upstream.bounds.failbackEvery)
	defer failback.Stop()
	for next := 0; ; {
		select {
		case <-s.ended:
			if earlier != nil {
				earlier.end(errReplaced)
				<-earlier.ended
			}
			return followed || s.taken
		case <-whole:
			s.end(errReplaced)
			<-s.ended
			followed, s, earlier, whole, failed = true, earlier, nil, nil, nil
		case <-failed:
			earlier, whole, failed = nil, nil, nil
		case <-failback.C:
			if earlier == nil && s.index > 0 {
				earlier = newSession(a, next%s.index)
				earlier.start(ctx)
				whole, failed, next = earlier.whole, earlier.ended, next+1
			}
		}
	}
}

// errReplaced ends the session of a server that an earlier server replaces.
var errReplaced = errors.New("an earlier server answers")

// recordFailure records that all servers have failed. After the failure of Options.Servers, Read waits no longer.
func (a *authority) recordFailure() {
	u := a.upstream
	u.mu.Lock()
	defer u.mu.Unlock()
	if a.name == "" {
		u.answer()
	}
}

// why returns the errors of the servers and the missing names; empty if there are none.
func (a *authority) why() string {
	var reasons []string
	for i, err := range a.errs {
		if err != nil {
			reasons = append(reasons, a.servers[i].Address+": "+diag.Hide(err.Error()))
		}
	}
	if len(a.missing) > 0 {
		reasons = append(reasons, "it still has to send "+diag.Few(a.missing, 5))
	}
	text := strings.Join(reasons, "; ")
	if text != "" && a.name != "" {
		text = "authority " + a.name + ": " + text
	}
	return diag.Clip(text, diag.MaxText)
}

// takeOver replaces the part by the resources of a session, and returns the number of the first contents that have the
// part. If an earlier server has replaced the server of the session, takeOver returns 0.
func (a *authority) takeOver(s *session) uint64 {
	part := s.streamState.contents(false)
	u := a.upstream
	u.mu.Lock()
	defer u.mu.Unlock()
	if a.current != nil && a.current.index < s.index {
		return 0
	}
	a.setPartStateLocked(s.streamState)
	a.part, a.entries, a.absent, a.current, a.missing = &part, s.streamState.entries(), s.streamState.absent(), s, nil
	a.errs[s.index] = nil
	was := a.refs
	a.refs = s.refs // subscribe has recorded the references of all resources
	a.connected(s)
	for k, e := range a.entries {
		if e.demand != "" && !u.loggedOnDemand[k] {
			u.loggedOnDemand[k] = true
			u.options.Log.Write(event.UpstreamOnDemand{Resource: diag.Printable(k.Type.API + "/" + k.Name), Path: string(e.demand)})
		}
	}
	u.wakeOthers(a, !sameKeys(was, a.refs))
	a.dropParts()
	return u.publish()
}

// connected records that the resources of a session are in use.
func (a *authority) connected(s *session) {
	address := a.servers[s.index].Address
	if !a.state.Connected {
		a.began = time.Now()
	}
	if !a.state.Connected || a.state.Server != address {
		a.state = load.State{Connected: true, Server: address, Since: time.Now()}
		a.upstream.options.Log.Write(event.UpstreamConnected{Server: address})
	}
}

// lost records the end of a session, whose error is err.
func (a *authority) lost(ctx context.Context, s *session, err error) {
	u := a.upstream
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(a.sessions, s)
	u.wakeOthers(a, !sameKeys(s.refs, a.refs))
	a.errs[s.index] = err
	if ctx.Err() != nil || a.state.Connected && a.current != s {
		return
	}
	was := a.state
	if a.current == s {
		if now := time.Now(); now.Sub(a.began) >= u.bounds.steadyAfter {
			a.outage = now
		}
		a.current, a.state = nil, load.State{Since: a.outage}
		u.options.Log.Write(event.UpstreamLost{Server: a.servers[s.index].Address, Error: err})
	}
	if a.state.Error = a.why(); a.state != was {
		notify(u.changed)
	}
}

// recordMissing records what a server has not sent.
func (a *authority) recordMissing(missing []string) {
	a.upstream.mu.Lock()
	defer a.upstream.mu.Unlock()
	if a.part == nil {
		a.missing = missing
	}
}

// refsToOthers returns the names of other authorities to which the resources of a session refer.
func (a *authority) refsToOthers(st *streamState) map[xds.Key]bool {
	if len(a.upstream.authorities) == 1 {
		return nil
	}
	all := make(map[xds.Key]bool)
	for k := range st.references() {
		if a.upstream.owner(k.Name) != a {
			all[k] = true
		}
	}
	return all
}

// updateRefs records the names of other authorities to which the resources of a session refer, and returns the names of
// this authority to which other authorities refer.
func (a *authority) updateRefs(s *session) (wanted map[xds.Key]bool) {
	u := a.upstream
	if len(u.authorities) == 1 {
		return nil
	}
	refs := a.refsToOthers(s.streamState)
	u.mu.Lock()
	defer u.mu.Unlock()
	was := s.refs
	s.refs = since(refs, was)
	u.wakeOthers(a, !sameKeys(was, s.refs))
	return a.wanted()
}

// since returns keys with their times in before. A key that before lacks gets the present time.
func since(keys map[xds.Key]bool, before map[xds.Key]time.Time) map[xds.Key]time.Time {
	all := make(map[xds.Key]time.Time, len(keys))
	for k := range keys {
		at, ok := before[k]
		if !ok {
			at = time.Now()
		}
		all[k] = at
	}
	return all
}

func sameKeys(a, b map[xds.Key]time.Time) bool {
	return maps.EqualFunc(a, b, func(time.Time, time.Time) bool { return true })
}

// updateWaits records whether a session waits for other authorities, and returns the names that the session waits for:
// its resources refer to these names, and the servers have not answered yet. next is when the next of these names
// counts as absent; zero for none.
func (a *authority) updateWaits(s *session, now time.Time) (missing []string, next time.Time) {
	u := a.upstream
	u.mu.Lock()
	defer u.mu.Unlock()
	for k, from := range s.refs {
		owner := u.owner(k.Name)
		late := from.Add(u.bounds.absentAfter)
		never := k.Type.Asked == xds.InGroups || !u.options.Transport.carries(k.Type) || k.Type == xds.Secret && !s.streamState.secureFor(k.Name)
		if never || owner.entries[k] != nil || owner.absent[k] || owner.offers(k) || !late.After(now) {
			continue
		}
		if next.IsZero() || late.Before(next) {
			next = late
		}
		if len(missing) < mostMissing {
			missing = append(missing, k.Type.API+" "+k.Name)
		}
	}
	slices.Sort(missing)
	s.waitsForOthers = len(missing) > 0
	a.updateOffers(s)
	return missing, next
}

// updateOffers records the names that other authorities may use before takeOver of a session.
func (a *authority) updateOffers(s *session) {
	was := s.offers
	if s.offers = nil; s.waitsForOthers {
		s.offers = a.wanted()
		maps.DeleteFunc(s.offers, func(k xds.Key, _ bool) bool {
			of := s.streamState.types[k.Type]
			return of == nil || of.entries[k.Name] == nil
		})
	}
	if !maps.Equal(was, s.offers) {
		a.upstream.wakeOthers(a, false)
	}
}

// offers reports whether a session has a resource, and waits for other authorities before takeOver. A session that
// waits for this resource goes on: otherwise two sessions would wait for each other.
func (a *authority) offers(k xds.Key) bool {
	for s := range a.sessions {
		if s.waitsForOthers && s.offers[k] {
			return true
		}
	}
	return false
}

// isWaiting reports whether a session waits for other authorities.
func (a *authority) isWaiting(s *session) bool {
	a.upstream.mu.Lock()
	defer a.upstream.mu.Unlock()
	return s.waitsForOthers
}

// wakeOthers wakes the sessions of other authorities that wait for names. With all, wakeOthers wakes each session of
// other authorities, and each authority in waitUntilNeeded.
func (u *Upstream) wakeOthers(a *authority, all bool) {
	for _, other := range u.authorities {
		if other == a {
			continue
		}
		if all {
			other.updateNeeds()
			notify(other.wake)
		}
		for s := range other.sessions {
			if all || s.waitsForOthers {
				notify(s.wake)
			}
		}
	}
}

// updateNeeds records whether the authority is needed. The outage of an authority that becomes needed begins now.
func (a *authority) updateNeeds() {
	was := a.needs
	if a.needs = a.needed(); a.needs && !was && !a.state.Connected {
		a.outage = time.Now()
		a.state.Since = a.outage
	}
}

// dropParts drops the parts of other authorities that are no longer needed, and whose servers are gone.
func (a *authority) dropParts() {
	for _, other := range a.upstream.authorities {
		if other != a && other.current == nil && !other.needed() {
			other.setPartStateLocked(nil)
			other.part, other.entries, other.absent, other.refs = nil, nil, nil, nil
		}
	}
}

// notify sends to a channel with a buffer of one, unless the buffer is full.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
