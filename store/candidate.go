package store

import (
	"context"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/render/history"
	"xdspub/watch/control"
	"xdspub/xds"
)

// lastTree returns the resources after the last step: the resources of the running candidate or, without a candidate,
// of the head. lastTree returns nil if the resources are unknown.
func (t *term) lastTree() *history.Tree {
	if t.head.running() != nil {
		return t.next
	}
	return t.last.tree
}

// base returns the head that takes the running candidate back, and the operation that writes its step. Without a
// candidate, base returns the head, with a new serial if the head is not the last head of this process. If the
// recipients have changed, the step has all resources.
func (t *term) base(ctx context.Context) (next Head, then []clientv3.Op, err error) {
	next = *t.head
	next.Rollout = nil
	switch r := t.head.running(); {
	case t.rekeyed():
		next = t.newHead(t.last.tree.Snapshot(), t.last.tree, t.serial())
		then, err = t.step(ctx, &next, t.last.tree, nil)
	case r != nil:
		next.Serial, next.Whole = t.serial(), r.Candidate.Whole
		then, err = t.step(ctx, &next, t.last.tree, t.next)
	case t.head.Serial != t.last.serial:
		next.Serial = t.serial()
	}
	return next, then, err
}

// settle moves the head to next, which has the resources of the head, and ends the running rollout.
func (t *term) settle(ctx context.Context, next Head, then []clientv3.Op) error {
	if err := t.move(ctx, next, then...); err != nil {
		return err
	}
	t.last, t.next = at{next.Serial, next.Step.Serial, t.last.tree, next.Tree}, nil
	return t.shorten(ctx)
}

// endRollout ends the rollout, if any, because the source tree has the resources of the head.
func (t *term) endRollout(ctx context.Context, s *xds.Snapshot) error {
	if t.head.Rollout == nil && t.head.Serial == t.last.serial && !t.rekeyed() {
		t.published(s, nil)
		return nil
	}
	writes := t.head.running() != nil || t.rekeyed()
	next, then, err := t.base(ctx)
	if err != nil {
		return err
	}
	if err := t.settle(ctx, next, then); err != nil {
		return err
	}
	if writes {
		t.published(s, &next)
	} else {
		t.published(s, nil)
	}
	return nil
}

// continueRollout continues the rollout of the candidate s. If the candidate was taken back, only an order of an
// operator begins another rollout.
func (t *term) continueRollout(ctx context.Context, s *xds.Snapshot, tree *history.Tree) error {
	r := t.head.Rollout
	given, _ := t.fleet.orders()
	if retry := given[retryOrder]; r.TakenBack != nil && retry != nil && retry.Candidate == r.Candidate.Step.Serial {
		return t.rollOut(ctx, s, tree)
	}
	if t.head.Serial == t.last.serial && !t.rekeyed() {
		t.published(s, nil)
		return nil
	}
	if r.TakenBack != nil {
		next, then, err := t.base(ctx)
		if err != nil {
			return err
		}
		next.Rollout = r
		return t.settle(ctx, next, then)
	}
	next, of := *t.head, *r
	next.Serial = t.serial()
	of.Candidate.Serial, next.Rollout = next.Serial+1, &of
	if err := t.move(ctx, next); err != nil {
		return err
	}
	t.last.serial = next.Serial
	return nil
}

// rollOut begins the rollout of a snapshot, which supersedes the running candidate. During a pause, rollOut changes
// nothing.
func (t *term) rollOut(ctx context.Context, s *xds.Snapshot, tree *history.Tree) error {
	given, known := t.fleet.orders()
	if t.waits = t.paused(given); !known {
		t.waits = keysUnread
	}
	if t.waits != "" {
		return nil
	}
	if t.head.running() != nil && t.isLong() { // a step with all resources comes between
		if next, then, err := t.base(ctx); err != nil {
			return err
		} else if err := t.settle(ctx, next, then); err != nil {
			return err
		}
	}
	next, then, err := t.base(ctx)
	if err != nil {
		return err
	}
	candidate := t.newHead(s, tree, max(t.serial(), next.Serial+1))
	candidate.Whole = next.Whole
	more, err := t.step(ctx, &candidate, tree, t.last.tree)
	if err != nil {
		return err
	}
	plan := t.plan()
	if plan == nil {
		plan = t.head.Rollout.Waves // of the rollout that an operator repeats
	}
	next.Rollout = &Rollout{Candidate: candidate, Waves: plan, Open: 1, Since: t.now().UTC().Round(0)}
	then = append(slices.Concat(then, more), clientv3.OpDelete(t.keys.orders()+retryOrder))
	if err := t.move(ctx, next, then...); err != nil {
		return err
	}
	t.last, t.next = at{next.Serial, next.Step.Serial, t.last.tree, next.Tree}, tree
	t.published(s, &candidate)
	t.opened()
	return nil
}

// open opens the next wave.
func (t *term) open(ctx context.Context) error {
	next, r := *t.head, *t.head.Rollout
	r.Open, r.Since = r.Open+1, t.now().UTC().Round(0)
	next.Rollout = &r
	if err := t.move(ctx, next); err != nil {
		return err
	}
	t.opened()
	return nil
}

// opened begins a new wave.
func (t *term) opened() {
	r := t.head.Rollout
	t.newWave()
	t.log.Write(event.RolloutWave{
		Store: t.options.Address.String(), Snapshot: r.Candidate.Snapshot, Wave: r.Open, Waves: len(r.Waves),
		Machines: diag.ClipLine(r.wave().String(), maxWords),
	})
}

// finish makes the candidate the head of all machines.
func (t *term) finish(ctx context.Context) error {
	next := t.head.Rollout.Candidate
	if err := t.move(ctx, next); err != nil {
		return err
	}
	t.last, t.next = at{next.Serial, next.Step.Serial, t.next, next.Tree}, nil
	t.log.Write(event.RolloutDone{Store: t.options.Address.String(), Snapshot: next.Snapshot})
	return t.shorten(ctx)
}

// takeBack gives all machines the base again.
func (t *term) takeBack(ctx context.Context, reason string) error {
	r := *t.head.running()
	next, then, err := t.base(ctx)
	if err != nil {
		return err
	}
	reason = diag.ClipLine(diag.Hide(reason), maxMessage)
	r.Candidate.Change = "" // no machine reads a candidate that was taken back
	r.TakenBack = &TakenBack{Reason: reason, Time: t.now().UTC().Round(0)}
	next.Rollout = &r
	if err := t.settle(ctx, next, append(then, clientv3.OpDelete(t.keys.orders()+abortOrder))); err != nil {
		return err
	}
	t.log.Write(event.RolloutTakenBack{
		Store: t.options.Address.String(), Snapshot: r.Candidate.Snapshot, Base: next.Snapshot, Wave: r.Open, Waves: len(r.Waves), Reason: reason,
	})
	return nil
}

// view returns the rollout as the writer sees it; nil for none. is says what the running rollout waits for.
func (t *term) view(wanted *xds.Snapshot, is waiting) *control.Rollout {
	v := t.head.view()
	switch {
	case t.waits != "":
		return &control.Rollout{Snapshot: t.cipher.name(wanted.ID()), Base: t.head.Snapshot, State: control.RolloutPaused, Message: t.waits}
	case v == nil || v.State == control.TakenBack:
		return v
	}
	v.State, v.Message, v.Until = is.state, diag.ClipLine(is.message, maxMessage), is.until
	return v
}
