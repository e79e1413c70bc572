package envoy

import (
	"context"
	"sync"
	"time"
)

// AwaitOptions say what a round waits for.
type AwaitOptions struct {
	// Warm is to wait, after the acknowledgements, until the clusters that came
	// with the round are warm: an Envoy that has acknowledged a cluster answers 503
	// for it until then. Those that were warming before the round are not waited
	// for: one that never gets warm would hold up every later step.
	Warm bool
}

// Round is one step of a publish: the files that are renamed between Begin and
// Await.
type Round struct {
	fleet   *Fleet
	subs    []Subscription
	roots   []string
	members []*member
	begun   time.Time
}

// Await asks all Envoys until the quorum of those that answer has acknowledged
// the files, or so many have refused that it can't be met, or the time is up. It
// is to be called after the files were renamed, and once.
func (r *Round) Await(ctx context.Context, o AwaitOptions) Outcome {
	verdict := r.poll(ctx)
	outcome := Outcome{Verdict: verdict, Err: ctx.Err()}
	now := time.Now()
	for _, m := range r.members {
		if m.counts(now) {
			outcome.Answering++
		}
		outcome.Envoys = append(outcome.Envoys, m.outcome())
	}
	if verdict == Rejected {
		r.explain(ctx, &outcome)
	}
	if verdict == Confirmed && o.Warm {
		r.warm(ctx, &outcome)
		outcome.Err = ctx.Err()
	}
	return outcome
}

// answer is what one question came to.
type answer struct {
	member  *member
	reading *Reading
	err     error
}

// poll asks each Envoy at a pace of its own, so that one that hangs holds up no
// other, and judges after each answer.
func (r *Round) poll(ctx context.Context) Verdict {
	polling, cancel := context.WithTimeout(ctx, r.fleet.o.AckTimeout)
	answers := make(chan answer)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, m := range r.members {
		wg.Go(func() { m.admin.poll(polling, r.roots, m, answers) })
	}
	for {
		if verdict, over := r.verdict(time.Now()); over {
			return verdict
		}
		select {
		case a := <-answers:
			a.member.observe(time.Now(), a, r.subs, r.fleet.o.Dir)
			r.fleet.note(a.member.admin, a.err)
		case <-polling.Done():
			return Unconfirmed
		}
	}
}

// poll sends answers until ctx, which has a deadline, ends.
func (a *Admin) poll(ctx context.Context, roots []string, m *member, answers chan<- answer) {
	for {
		start := time.Now()
		reading, err := a.Read(ctx, roots)
		took := time.Since(start)
		if err != nil {
			took = 0 // there is nobody whose time it took
		}
		if ctx.Err() != nil || err != nil && past(ctx) {
			return
		}
		select {
		case answers <- answer{m, reading, err}:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(pause(took)):
		case <-ctx.Done():
			return
		}
	}
}

// past tells whether the deadline of ctx is over, of which a connection may know before
// ctx does: it is no fault of an Envoy then that a question went without an answer.
func past(ctx context.Context) bool {
	deadline, _ := ctx.Deadline()
	return !time.Now().Before(deadline)
}

// pause is how long to leave an Envoy alone after an answer that took as long: what
// it is asked keeps its main thread busy, so that it gets a sixth of the time.
func pause(took time.Duration) time.Duration {
	const shortest, share, longest = 50 * time.Millisecond, 5, 2 * time.Second
	return min(max(shortest, share*took), longest)
}

// verdict tells whether the round is over, and how.
func (r *Round) verdict(now time.Time) (v Verdict, over bool) {
	answering, acked, refused := 0, 0, 0
	for _, m := range r.members {
		if !m.heard && (m.down() || m.silent()) {
			// It may have come up, or was at work on something else, such as an answer of
			// 50 MB for somebody who collects statistics: one look tells.
			return Unconfirmed, false
		}
		if !m.counts(now) {
			continue
		}
		answering++
		switch m.state() {
		case Acked:
			acked++
		case Refused:
			refused++
		}
	}
	need := r.fleet.o.Quorum.of(answering)
	switch {
	case answering == 0:
		return Unconfirmed, true
	case answering-refused < need:
		return Rejected, true
	case acked >= need:
		return Confirmed, true
	}
	return Unconfirmed, false
}

// warm waits until all Envoys that acknowledged are warm, and notes which clusters
// are not when the time is up.
func (r *Round) warm(ctx context.Context, outcome *Outcome) {
	patience, cancel := context.WithTimeout(ctx, r.fleet.o.WarmTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for i, m := range r.members {
		// One that has not been heard since has acknowledged nothing: it follows none of
		// the files.
		if e := &outcome.Envoys[i]; e.Err == nil && e.State() == Acked && m.last != nil && m.last.WarmingClusters > 0 {
			wg.Go(func() { e.NotWarm = m.awaitWarm(ctx, patience.Done()) })
		}
	}
	wg.Wait()
}

// awaitWarm returns the clusters that are still cold when the time is up. An Envoy
// that gives no answer any more has none that could be waited for.
func (m *member) awaitWarm(ctx context.Context, up <-chan struct{}) []string {
	for {
		start := time.Now()
		cold, err := m.coldClusters(ctx)
		if err != nil || len(cold) == 0 {
			return nil
		}
		select {
		case <-time.After(pause(time.Since(start))):
		case <-up:
			return cold
		}
	}
}
