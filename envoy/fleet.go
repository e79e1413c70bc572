package envoy

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"xdspub/event"
	"xdspub/internal/parallel"
	"xdspub/xds/quorum"
)

// FleetOptions says which Envoys read the output directory.
type FleetOptions struct {
	Admins []*Admin
	Quorum quorum.Quorum // zero: all
	// Dir is the output directory as the Envoys see it. An Envoy that reads no file in Dir causes a
	// *NotSubscribedError. "" skips the check.
	Dir string
	// Logs are files that Envoys log to. They have the reasons for refusals.
	Logs []*Log
	// AckTimeout is how long an AckWait waits for ACKs. 0 is 15s.
	AckTimeout time.Duration
	// WarmTimeout is how long an AckWait then waits for warm clusters. 0 is 15s.
	WarmTimeout time.Duration
	// Log gets an event when an Envoy stops answering, when it answers again, and when the reasons for a refusal
	// can't be read. A nil Log discards events.
	Log *event.Log
}

// Fleet is the set of Envoys that read an output directory.
type Fleet struct {
	o FleetOptions

	mu           sync.Mutex
	unanswered   map[*Admin]bool        // whether EnvoyUnreachable is the last event of the Envoy
	incarnations map[*Admin]Incarnation // the last process that readsBelow has accepted
	known        map[*Admin]*memory     // see remember
}

// NewFleet returns a Fleet. NewFleet does not ask the Envoys.
func NewFleet(o FleetOptions) *Fleet {
	o.AckTimeout = cmp.Or(o.AckTimeout, 15*time.Second)
	o.WarmTimeout = cmp.Or(o.WarmTimeout, 15*time.Second)
	return &Fleet{o: o, unanswered: make(map[*Admin]bool), incarnations: make(map[*Admin]Incarnation), known: make(map[*Admin]*memory)}
}

// Addresses returns the admin interfaces, as they were given.
func (f *Fleet) Addresses() []string {
	list := make([]string, len(f.o.Admins))
	for i, a := range f.o.Admins {
		list[i] = a.String()
	}
	return list
}

// AckTimeout returns how long an AckWait waits for ACKs.
func (f *Fleet) AckTimeout() time.Duration { return f.o.AckTimeout }

// Begin observes all Envoys concurrently before the files of the subscriptions are renamed.
//
// Begin only logs an Envoy that is down or too slow. An Envoy whose answers allow no verdict causes an error:
// *UnexpectedResponseError, *ForbiddenError, *UnstableError, *StatsExcludedError or *NotSubscribedError. running,
// unless nil, returns the subscriptions to all files as published now; an Envoy that excludes statistics of such a
// subscription causes an error, too. Begin calls running at most once, and only for Envoys that it can't recall.
func (f *Fleet) Begin(ctx context.Context, subs []Subscription, running func() []Subscription) (*AckWait, error) {
	w := &AckWait{fleet: f, subs: subs, statPrefixes: statPrefixesOf(subs), started: time.Now()}
	for _, log := range f.o.Logs {
		if err := log.Mark(); err != nil {
			return nil, err
		}
	}
	var wg parallel.Group
	asking, cancel := context.WithTimeout(ctx, f.o.AckTimeout)
	defer cancel()
	if running == nil {
		running = func() []Subscription { return nil }
	}
	running = sync.OnceValue(running)
	for _, admin := range f.o.Admins {
		p := &peer{admin: admin}
		w.peers = append(w.peers, p)
		wg.Go(func() { f.begin(asking, p, w, running) })
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var wrong []error
	for _, p := range w.peers {
		if p.err != nil && !p.down() && !p.timedOut() {
			wrong = append(wrong, p.err)
			continue
		}
		f.note(p.admin, p.err)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return w, nil
}

// begin observes one Envoy, and stores the observation or the error in p.
func (f *Fleet) begin(ctx context.Context, p *peer, w *AckWait, running func() []Subscription) {
	defer f.unlearn(p.admin, w.subs)
	if p.base = f.recall(ctx, p.admin, w.subs); p.base != nil {
		p.recalled = true
		p.updateStatuses(w.subs, f.o.Dir)
		return
	}
	all := slices.Concat(running(), w.subs)
	p.base, p.err = p.admin.Read(ctx, statPrefixesOf(all))
	if p.err == nil {
		p.err = f.claim(ctx, p.admin, p.base.Incarnation)
	}
	if p.err == nil {
		p.err = f.probeOf(p.admin, p.base, running()).ExcludedStats()
	}
	if p.err == nil && p.base.WarmingClusters > 0 {
		p.warming, p.err = p.admin.Warming(ctx)
	}
	if p.err != nil {
		p.base = nil
	} else {
		f.remember(p.admin, p.base)
	}
	p.updateStatuses(w.subs, f.o.Dir)
}

// claim returns a *NotSubscribedError if a process reads no file of FleetOptions.Dir. It asks a process no more
// after the process was found to read one.
func (f *Fleet) claim(ctx context.Context, admin *Admin, incarnation Incarnation) error {
	f.mu.Lock()
	known := f.o.Dir == "" || f.incarnations[admin] == incarnation
	f.mu.Unlock()
	if known {
		return nil
	}
	if err := admin.readsBelow(ctx, f.o.Dir); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.incarnations[admin] = incarnation
	return nil
}

// note logs whether an Envoy answers, if the last event of the Envoy says otherwise. err is the error of its last
// answer.
func (f *Fleet) note(admin *Admin, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil && !f.unanswered[admin]:
		f.o.Log.Write(event.EnvoyUnreachable{Envoy: admin.String(), Error: err})
	case err == nil && f.unanswered[admin]:
		f.o.Log.Write(event.EnvoyReachable{Envoy: admin.String()})
	}
	f.unanswered[admin] = err != nil
}

// statPrefixesOf returns the stat prefixes of all subscriptions, sorted, each once.
func statPrefixesOf(subs []Subscription) []string {
	var prefixes []string
	for _, s := range subs {
		prefixes = append(prefixes, s.StatPrefixes...)
	}
	slices.Sort(prefixes)
	return slices.Compact(prefixes)
}
