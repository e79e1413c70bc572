package envoy

import (
	"context"
	"time"

	"xdspub/internal/parallel"
)

// AwaitOptions says what Await waits for.
type AwaitOptions struct {
	// Warm makes Await wait, after the ACKs, until the clusters of the new files are warm: until then, an Envoy
	// that has acknowledged a cluster answers 503 for the cluster. Await does not wait for clusters that were
	// warming before Begin: a cluster that never gets warm would block every later step. For a restarted Envoy,
	// Await waits for all clusters.
	Warm bool
}

// AckWait is the wait for the ACKs of one step of a publish: for the ACKs of the files that are renamed between
// Begin and Await.
type AckWait struct {
	fleet        *Fleet
	subs         []Subscription
	statPrefixes []string
	peers        []*peer
	started      time.Time // of Begin
}

// Await asks all Envoys until a quorum of the answering Envoys has acknowledged the files, until refusals make
// the quorum impossible, or until the timeout. Call Await once, after the files were renamed.
func (w *AckWait) Await(ctx context.Context, o AwaitOptions) Outcome {
	verdict := w.poll(ctx)
	outcome := Outcome{Verdict: verdict, Err: ctx.Err()}
	now := time.Now()
	for _, p := range w.peers {
		if p.counts(now) {
			outcome.Answering++
		}
		outcome.Envoys = append(outcome.Envoys, p.outcome())
		if p.err == nil && p.last != nil && p.state() == Acked {
			w.fleet.remember(p.admin, p.last)
		} else {
			w.fleet.forget(p.admin)
		}
	}
	if verdict == RefusedByQuorum {
		w.explain(ctx, &outcome)
	}
	if verdict == Confirmed && o.Warm {
		w.warm(ctx, &outcome)
		outcome.Err = ctx.Err()
	}
	return outcome
}

// answer is the result of one question to an Envoy.
type answer struct {
	peer        *peer
	observation *Observation
	err         error
}

// poll asks each Envoy at its own pace, so that a hanging Envoy delays no other Envoy, and decides after each
// answer.
func (w *AckWait) poll(ctx context.Context) Verdict {
	polling, cancel := context.WithTimeout(ctx, w.fleet.o.AckTimeout)
	answers := make(chan answer)
	var wg parallel.Group
	defer wg.Wait()
	defer cancel()
	for _, p := range w.peers {
		wg.Go(func() { w.ask(polling, p, answers) })
	}
	for {
		if verdict, over := w.verdict(time.Now()); over {
			return verdict
		}
		select {
		case a := <-answers:
			a.peer.observe(time.Now(), a, w.subs, w.fleet.o.Dir)
			w.fleet.note(a.peer.admin, a.err)
		case <-polling.Done():
			return Unconfirmed
		}
	}
}

// ask asks one Envoy again and again, and sends its answers. ask ends with ctx, which needs a deadline.
func (w *AckWait) ask(ctx context.Context, p *peer, answers chan<- answer) {
	var observation *Observation
	if p.recalled {
		observation = p.admin.readTexts(ctx, p.base, p.base.subscribed(w.subs, w.fleet.o.Dir))
	}
	for ; ; observation = nil {
		start := time.Now()
		var err error
		if observation == nil {
			observation, err = p.admin.Read(ctx, w.statPrefixes)
		}
		took := time.Since(start)
		if err != nil {
			took = 0 // the question did not keep an Envoy busy
		}
		if ctx.Err() != nil || err != nil && past(ctx) {
			return
		}
		select {
		case answers <- answer{p, observation, err}:
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

// past reports whether the deadline of ctx is over. A connection may end at the deadline before ctx does. The
// missing answer is then no fault of the Envoy.
func past(ctx context.Context) bool {
	deadline, _ := ctx.Deadline()
	return !time.Now().Before(deadline)
}

// pause returns the wait between an answer and the next question. took is the time from the question to the answer,
// in which Envoy's main thread is busy. Questions get at most a sixth of its time, and one is asked at least every
// two seconds.
func pause(took time.Duration) time.Duration {
	const shortest, share, longest = 50 * time.Millisecond, 5, 2 * time.Second
	return min(max(shortest, share*took), longest)
}

// verdict reports whether the wait is over, and with what verdict.
func (w *AckWait) verdict(now time.Time) (v Verdict, over bool) {
	answering, acked, refused := 0, 0, 0
	for _, p := range w.peers {
		if !p.heard && (p.down() || p.timedOut()) {
			// The Envoy may have started since Begin. Or it was busy at Begin, such as with 50 MB of statistics for
			// another client. Wait for its first answer.
			return Unconfirmed, false
		}
		if !p.counts(now) {
			continue
		}
		answering++
		switch p.state() {
		case Acked:
			acked++
		case Refused:
			refused++
		}
	}
	need := w.fleet.o.Quorum.Of(answering)
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

// warm waits until all acknowledging Envoys are warm, and records the clusters that are cold at the timeout.
func (w *AckWait) warm(ctx context.Context, outcome *Outcome) {
	patience, cancel := context.WithTimeout(ctx, w.fleet.o.WarmTimeout)
	defer cancel()
	var wg parallel.Group
	for i, p := range w.peers {
		// An Envoy without an answer since the rename has acknowledged nothing: it subscribes to none of the
		// files.
		if e := &outcome.Envoys[i]; e.Err == nil && e.State() == Acked && p.last != nil && p.last.WarmingClusters > 0 {
			wg.Go(func() { e.NotWarm = p.awaitWarm(ctx, patience.Done()) })
		}
	}
	wg.Wait()
}

// awaitWarm waits until no cluster is cold, and returns nil. At the timeout, it returns the cold clusters. It
// returns nil if the Envoy no longer answers.
func (p *peer) awaitWarm(ctx context.Context, timeout <-chan struct{}) []string {
	for {
		start := time.Now()
		cold, err := p.coldClusters(ctx)
		if err != nil || len(cold) == 0 {
			return nil
		}
		select {
		case <-time.After(pause(time.Since(start))):
		case <-timeout:
			return cold
		}
	}
}
