package envoy

import (
	"context"
	"sync"
	"time"
)

// AwaitOptions says what Await waits for.
type AwaitOptions struct {
	// Warm makes Await wait, after the ACKs, until the clusters that the files added are
	// warm: an Envoy that has acknowledged a cluster answers 503 for it until then. Await
	// does not wait for clusters that were warming before: one that never gets warm
	// would block every later step.
	Warm bool
}

// AckWait is the wait for the ACKs of one step of a publish: of the files that are renamed
// between Begin and Await.
type AckWait struct {
	fleet        *Fleet
	subs         []Subscription
	statPrefixes []string
	peers        []*peer
	started      time.Time
}

// Await asks all Envoys until the quorum of those that answer has acknowledged
// the files, or so many have refused them that the quorum can't be met, or the timeout
// is over. Call it once, after the files were renamed.
func (r *AckWait) Await(ctx context.Context, o AwaitOptions) Outcome {
	verdict := r.poll(ctx)
	outcome := Outcome{Verdict: verdict, Err: ctx.Err()}
	now := time.Now()
	for _, m := range r.peers {
		if m.counts(now) {
			outcome.Answering++
		}
		outcome.Envoys = append(outcome.Envoys, m.outcome())
	}
	if verdict == RefusedByQuorum {
		r.explain(ctx, &outcome)
	}
	if verdict == Confirmed && o.Warm {
		r.warm(ctx, &outcome)
		outcome.Err = ctx.Err()
	}
	return outcome
}

// answer is the result of one question.
type answer struct {
	peer        *peer
	observation *Observation
	err         error
}

// poll asks each Envoy at a pace of its own, so that one that hangs holds up no
// other, and decides after each answer.
func (r *AckWait) poll(ctx context.Context) Verdict {
	polling, cancel := context.WithTimeout(ctx, r.fleet.o.AckTimeout)
	answers := make(chan answer)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, m := range r.peers {
		wg.Go(func() { m.admin.poll(polling, r.statPrefixes, m, answers) })
	}
	for {
		if verdict, over := r.verdict(time.Now()); over {
			return verdict
		}
		select {
		case a := <-answers:
			a.peer.observe(time.Now(), a, r.subs, r.fleet.o.Dir)
			r.fleet.note(a.peer.admin, a.err)
		case <-polling.Done():
			return Unconfirmed
		}
	}
}

// poll asks one Envoy again and again, and sends its answers, until ctx, which has a
// deadline, ends.
func (a *Admin) poll(ctx context.Context, prefixes []string, m *peer, answers chan<- answer) {
	for {
		start := time.Now()
		observation, err := a.Read(ctx, prefixes)
		took := time.Since(start)
		if err != nil {
			took = 0 // it took no time of an Envoy
		}
		if ctx.Err() != nil || err != nil && past(ctx) {
			return
		}
		select {
		case answers <- answer{m, observation, err}:
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

// past reports whether the deadline of ctx is over. A connection may know it before ctx
// does: the Envoy is then not to blame for a question without an answer.
func past(ctx context.Context) bool {
	deadline, _ := ctx.Deadline()
	return !time.Now().Before(deadline)
}

// pause returns how long to wait after an answer that took a time: a question keeps
// Envoy's main thread busy, so questions get a sixth of its time.
func pause(took time.Duration) time.Duration {
	const shortest, share, longest = 50 * time.Millisecond, 5, 2 * time.Second
	return min(max(shortest, share*took), longest)
}

// verdict reports whether the wait is over, and with what verdict.
func (r *AckWait) verdict(now time.Time) (v Verdict, over bool) {
	answering, acked, refused := 0, 0, 0
	for _, m := range r.peers {
		if !m.heard && (m.down() || m.timedOut()) {
			// It may have started since, or was busy, for example with an answer of 50 MB
			// for somebody who collects statistics: one observation shows it.
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
		return RefusedByQuorum, true
	case acked >= need:
		return Confirmed, true
	}
	return Unconfirmed, false
}

// warm waits until all Envoys that acknowledged are warm, and notes the clusters that
// are not when the timeout is over.
func (r *AckWait) warm(ctx context.Context, outcome *Outcome) {
	patience, cancel := context.WithTimeout(ctx, r.fleet.o.WarmTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for i, m := range r.peers {
		// One that did not answer since has acknowledged nothing: it is subscribed to none
		// of the files.
		if e := &outcome.Envoys[i]; e.Err == nil && e.State() == Acked && m.last != nil && m.last.WarmingClusters > 0 {
			wg.Go(func() { e.NotWarm = m.awaitWarm(ctx, patience.Done()) })
		}
	}
	wg.Wait()
}

// awaitWarm returns the clusters that are still cold when the timeout is over, and none
// where the Envoy does not answer any more.
func (m *peer) awaitWarm(ctx context.Context, up <-chan struct{}) []string {
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
