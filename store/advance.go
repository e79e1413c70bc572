package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/render/history"
	"xdspub/store/waves"
	"xdspub/watch/control"
	"xdspub/xds"
)

const (
	// gather is how long a term waits for more acknowledgements after an acknowledgement.
	gather = 100 * time.Millisecond
	// gateEvery is how often a term looks at the targets of an earlier wave.
	gateEvery = time.Second
	// idle is the longest time between two turns of a term.
	idle = time.Hour
)

// rolling is what a term knows of rollouts, besides the head.
type rolling struct {
	next  *history.Tree // the resources of the running candidate; nil for none
	fleet *fleetKeys    // nil before the first rollout
	// reached is since when the last open wave has its quorum; zero without the quorum. A new term begins the bake time
	// again, because the clocks of two writers may differ.
	reached time.Time
	check   checking
	checked chan checkResult
	// waits is why the rollout of the wanted snapshot has not begun; empty for no reason.
	waits  string
	warned string // the last logged reason for which the rollout waits
}

// keysUnread is why a rollout waits until the term has read the keys of machines and operators.
const keysUnread = "the acknowledgements are not read yet"

// waiting is what a running rollout waits for.
type waiting struct {
	state   control.RolloutState
	message string
	until   time.Time     // of a bake time
	again   time.Duration // the longest time until the next turn
	warns   bool          // somebody has to do something
}

// newTerm returns a term that has not begun.
func (s *targetWriter) newTerm(c *client) *term {
	return &term{targetWriter: s, client: c, rolling: rolling{checked: make(chan checkResult, 1)}}
}

// newWave forgets what the term knows of an earlier wave of the running rollout.
func (t *term) newWave() {
	r := t.head.running()
	t.reached, t.warned = time.Time{}, ""
	t.check = checking{wave: waveKey{r.Candidate.Step.Serial, r.Open}, running: t.check.running}
}

// turn publishes the wanted snapshot, advances the rollout, and returns when the next turn is due.
func (t *term) turn(ctx context.Context) (again time.Duration, err error) {
	t.attend(ctx)
	t.waits = ""
	wanted := t.wanted.Load()
	if err := t.publish(ctx, wanted); err != nil {
		return 0, err
	}
	for {
		is, moved, err := t.advance(ctx)
		if err != nil {
			return 0, err
		}
		if !moved {
			return is.again, t.tell(ctx, wanted, is)
		}
	}
}

// attend begins to follow the keys of machines and operators, if a rollout runs or the writer has waves.
func (t *term) attend(ctx context.Context) {
	if t.fleet != nil || t.plan() == nil && (t.head == nil || t.head.Rollout == nil) {
		return
	}
	t.fleet = newFleetKeys(t.client, t.keys)
	said := ""
	go crash.Again(ctx.Done(), func() {
		t.fleet.run(ctx, func(err error) {
			if err = t.client.explained(err); err.Error() != said {
				said = err.Error()
				t.log.Write(event.StoreFailed{Store: t.options.Address.String(), Error: err})
			}
		})
	}, t.log.Crashed)()
}

// paused returns why no rollout begins and no wave is opened; empty for no reason.
func (t *term) paused(given map[string]*Order) string {
	if o := given[pauseOrder]; o != nil {
		return o.pause()
	}
	if why := t.watchPaused.Load(); why != nil {
		return *why
	}
	return ""
}

// advance does what the running rollout needs next. moved means that advance has moved the head.
func (t *term) advance(ctx context.Context) (is waiting, moved bool, err error) {
	r := t.head.running()
	if r == nil {
		return waiting{again: idle}, false, nil
	}
	given, known := t.fleet.orders()
	if !known {
		return waiting{state: control.Acknowledging, message: keysUnread, again: idle}, false, nil
	}
	of := t.fleet.count(r, t.keys.target)
	switch o := given[abortOrder]; {
	case o != nil && o.Candidate == r.Candidate.Step.Serial:
		return is, true, t.takeBack(ctx, "aborted "+o.String())
	case of.refuses != nil:
		return is, true, t.takeBack(ctx, fmt.Sprintf("the machine %s refuses the snapshot: %s", of.refuses.Name, of.refuses.Message))
	case t.check.failed != nil:
		return is, true, t.takeBack(ctx, t.check.failed.Error())
	}
	is, isEmpty := t.quorumWait(r, of)
	if is.state == "" {
		is = t.bakeWait(r, isEmpty)
	} else {
		t.reached = time.Time{}
		if err := t.fleet.listen(ctx, of.missing); err != nil {
			return is, false, err
		}
	}
	why := t.paused(given)
	switch {
	case is.state != "" || why != "":
		t.checkAgain(ctx, r, is)
	case r.Open < len(r.Waves):
		return is, true, t.open(ctx)
	default:
		return is, true, t.finish(ctx)
	}
	if why != "" {
		is = waiting{state: control.RolloutPaused, message: why, again: idle}
	}
	if len(t.options.Checks) > 0 {
		is.again = min(is.again, checkEvery)
	}
	return is, false, nil
}

// quorumWait returns what the quorum of the last open wave waits for; a waiting without a state if the wave has the
// quorum. isEmpty means that no machine of the target is in the wave, so that the wave needs no bake time.
func (t *term) quorumWait(r *Rollout, of counted) (is waiting, isEmpty bool) {
	w := r.wave()
	if !w.In(t.keys.target) {
		for _, target := range w.Targets {
			if why := t.writer.unsettled(target); why != "" {
				return waiting{state: control.Acknowledging, message: fmt.Sprintf("the target %s is first, and %s", target, why), again: gateEvery}, false
			}
		}
		return is, false
	}
	switch heard := of.Machines - of.Silent; {
	case of.Machines == 0 && w.Label != "" && of.left > 0:
		return waiting{
			state: control.Acknowledging, again: idle, warns: true,
			message: fmt.Sprintf("no machine has the label %s: start one with --label %[1]s, or correct the wave", w.Label),
		}, false
	case of.Machines == 0:
		return is, true
	case heard == 0:
		return waiting{state: control.Acknowledging, message: "all machines of the wave are silent", again: beatEvery, warns: true}, false
	case !of.reached(w):
		return waiting{state: control.Acknowledging, message: "its machines acknowledge", again: beatEvery}, false
	}
	return is, false
}

// bakeWait returns what a wave with a quorum waits for; a waiting without a state if the bake time and the checks are
// over.
func (t *term) bakeWait(r *Rollout, isEmpty bool) (is waiting) {
	if isEmpty {
		return is
	}
	if t.reached.IsZero() {
		t.reached = t.now()
	}
	until := t.reached.Add(r.wave().Bake)
	if rest := until.Sub(t.now()); rest > 0 {
		again := rest
		if !r.wave().In(t.keys.target) {
			again = min(rest, gateEvery)
		}
		return waiting{state: control.Baking, until: until, again: again}
	}
	if t.isOut(r) && len(t.options.Checks) > 0 && t.check.passed.Before(until) {
		is = waiting{state: control.Checking, message: "a check has not answered yet", again: checkEvery}
		if t.check.unknown != nil {
			is.message, is.warns = t.check.unknown.Error(), true
		}
	}
	return is
}

// isOut reports whether an open wave takes machines of the target.
func (t *term) isOut(r *Rollout) bool {
	return slices.ContainsFunc(r.Waves[:r.Open], func(w waves.Wave) bool { return w.In(t.keys.target) })
}

// tell shows the watch the rollout, and that a turn has ended without an error. tell also writes the rollout into the
// key of the writer, which rollout status reads.
func (t *term) tell(ctx context.Context, wanted *xds.Snapshot, is waiting) error {
	if t.head.Rollout == nil && t.head.Snapshot == t.cipher.name(wanted.ID()) {
		t.through.Store(wanted)
	} else {
		t.through.Store(nil)
	}
	v := t.view(wanted, is)
	if v != nil && v.Message != t.warned && v.Message != keysUnread && (is.warns || v.State == control.RolloutPaused) {
		t.log.Write(event.RolloutWaits{Store: t.options.Address.String(), Snapshot: v.Snapshot, Wave: v.Wave, Waves: v.Waves, Reason: diag.Hide(v.Message)})
		t.warned = v.Message
	}
	t.show(func(c *control.Store) {
		if c.Error = ""; !same(c.Rollout, v) {
			c.Rollout = v.Shown()
		}
	})
	if same(v, t.is.Rollout) {
		return nil
	}
	of := t.is
	of.Rollout = v
	text, err := json.Marshal(of)
	if err != nil {
		return err
	}
	done, _, err := t.client.commit(ctx, []clientv3.Cmp{t.mine()}, clientv3.OpPut(t.keys.writer(), string(text), clientv3.WithLease(t.lease)))
	if err == nil && !done {
		err = errLost
	}
	t.is = of
	return err
}

// same reports whether a and b are equal. nil equals nil alone.
func same(a, b *control.Rollout) bool { return a == b || a != nil && b != nil && *a == *b }
