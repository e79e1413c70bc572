package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"xdspub/check"
	"xdspub/event"
	"xdspub/render/history"
	"xdspub/render/planner"
	"xdspub/watch/control"
	"xdspub/watch/operator"
	"xdspub/watch/pipeline"
	"xdspub/xds/variants"
)

// PublishTree is Publish for a source tree. With Options.ConfirmWithin, a snapshot that replaces another one is then on
// trial: Outcome.Trial. The trial is recorded before the first file moves, so that no killed process leaves a change
// that nobody undoes.
func (c *Controller) PublishTree(ctx context.Context, checked *check.Result, plan *planner.Plan) (Outcome, error) {
	untried, err := c.beginTrial(ctx, checked, plan)
	if err != nil {
		return Outcome{}, err
	}
	o, err := c.Publish(ctx, checked, plan)
	if err != nil {
		return o, err
	}
	if untried != "" && o.Verdict == Published {
		o.Untried = untried
		c.log.Write(event.NothingToUndo{Snapshot: o.Snapshot, Cause: untried})
	}
	err = c.trialTried(o)
	if o.Verdict == Published {
		o.Trial = c.decisions.Trial.Shown(c.clock)
	}
	return o, err
}

// beginTrial records the trial of a source tree that is about to be published. untried is why a snapshot needs no
// confirmation; empty if it has a trial, or if no snapshot is replaced.
func (c *Controller) beginTrial(ctx context.Context, checked *check.Result, plan *planner.Plan) (untried string, err error) {
	if plan == nil || plan.Held != nil || c.kept() == nil {
		return "", nil
	}
	d := c.decisions
	if t := d.Trial; t != nil && (t.Done || t.Source == c.servedID(checked)) {
		return "", nil // published before, or continued
	}
	changed := d.RefuseTrial() // the process that began it was killed before it published the snapshot
	if c.options.ConfirmWithin > 0 {
		var t *operator.Trial
		if t, untried, err = c.trialOf(ctx, checked, plan); err != nil {
			return "", err
		}
		if t != nil {
			changed = d.Begin(*t) || changed
		}
	}
	if !changed {
		return untried, nil
	}
	if err := d.Write(c.kept()); err != nil {
		return "", err
	}
	c.decisions = d
	return untried, nil
}

// trialOf returns the trial of a source tree; nil if its snapshot is published already, or if nothing was published
// before. untried then says so.
func (c *Controller) trialOf(ctx context.Context, checked *check.Result, plan *planner.Plan) (t *operator.Trial, untried string, err error) {
	now, err := c.standing()
	if err != nil {
		return nil, "", err
	}
	if now.snapshot == "" {
		return nil, "nothing was published before", nil
	}
	h, err := history.Read(c.kept().Path())
	if err != nil {
		return nil, "", err
	}
	defer h.Close()
	is, err := out(h, now.snapshot)
	if err != nil {
		if is, err = c.enter(ctx); err != nil {
			return nil, "", err
		}
	}
	switch {
	case now.interrupted == "" && is.Snapshot == plan.ID && c.isOut(h, is, checked):
		return nil, "", nil
	case is.Outcome() == history.RejectedKept: // of another snapshot
		return nil, "Envoy has rejected what was published before", nil
	}
	who := cmp.Or(c.through, &control.Decision{By: c.options.By, Reason: c.options.Reason})
	return &operator.Trial{
		Decision: control.Decision{
			By: cmp.Or(who.By, "unknown"), Reason: cmp.Or(who.Reason, "--confirm-within "+c.options.ConfirmWithin.String()), Since: c.clock.Now(),
		},
		Snapshot: plan.ID, Source: c.servedID(checked), Entry: is.ID, Before: is.Snapshot, EntryTime: is.Time, Ends: c.clock.In(c.options.ConfirmWithin),
	}, "", nil
}

// isOut reports whether an entry of the history has the resources of a checked source tree, with all variants.
func (c *Controller) isOut(h *history.History, is history.Item, checked *check.Result) bool {
	if c.options.Server == nil || c.options.Source.Client != nil {
		return is.Content == checked.Snapshot.ID()
	}
	s, err := h.Load(is.ID, c.registry())
	return err == nil && variants.Of(s).ID() == c.servedID(checked)
}

// enter adds the published snapshot to the history, which lacks it if a process was killed before its Record. The
// error says why that can't be done: nothing could undo a change then.
func (c *Controller) enter(ctx context.Context) (history.Item, error) {
	lacks := fmt.Errorf("the history of %s lacks the published snapshot %s, so that nothing could undo a change: publish once without --confirm-within",
		c.place(), c.SnapshotID())
	if c.dir == nil {
		return history.Item{}, lacks
	}
	m, err := c.dir.Reader().Manifest()
	if err != nil {
		return history.Item{}, err
	}
	s := c.live.snapshot
	if s == nil && !c.apart {
		if s, err = c.pipeline.Live(); err != nil {
			return history.Item{}, errors.Join(lacks, err)
		}
	}
	if s == nil || m.Part != nil || s.ID() != m.Snapshot || !c.opensHistory() {
		return history.Item{}, lacks
	}
	item, err := c.history.Record(c.entry(ctx, Outcome{Verdict: Published, Snapshot: m.Snapshot, Revision: m.Revision, Began: m.Published}), s)
	if err != nil {
		return history.Item{}, errors.Join(lacks, err)
	}
	return item, nil
}

// trialTried notes what became of the snapshot of the trial.
func (c *Controller) trialTried(o Outcome) error {
	d, t := c.decisions, c.decisions.Trial
	switch {
	case t == nil || t.Done || o.Snapshot != t.Snapshot:
		return nil
	case o.Verdict == Published:
		return c.doneTrial()
	case o.Verdict != Held && !(o.Verdict == RefusedByEnvoy && o.Restored):
		return nil
	}
	if d.RefuseTrial() {
		if err := d.Write(c.kept()); err != nil {
			return err
		}
		c.decisions = d
	}
	return nil
}

// doneTrial notes that the snapshot of the trial is published. Its whole time begins now.
func (c *Controller) doneTrial() error {
	d := c.decisions
	pin, _ := d.DoneTrial(c.clock.In(d.Trial.Ends.Length))
	if err := d.Write(c.kept()); err != nil {
		return err
	}
	c.decisions, c.pin = d, nil
	shown := d.Trial.Shown(c.clock)
	if pin != nil {
		c.log.Write(event.PinEnded{By: pin.By, Reason: pin.Reason, Since: pin.Since, Entry: pin.Entry})
	}
	c.log.Write(event.AwaitsConfirmation{Snapshot: shown.Snapshot, Until: shown.Until, Entry: shown.Entry})
	return nil
}

// completeTrial notes that the snapshot of the trial is published, if the process that has published it was killed
// before it noted that.
func (c *Controller) completeTrial() error {
	if t := c.decisions.Trial; t == nil || t.Done || t.Snapshot != c.SnapshotID() {
		return nil
	}
	return c.doneTrial()
}

// awaits reports whether a source tree waits because another one is on trial.
func (c *Controller) awaits(checked *check.Result) bool {
	t := c.decisions.Trial
	return t != nil && t.Done && t.Source != c.servedID(checked)
}

// Continues reports whether a source tree is on trial, and nothing is paused. A render of the tree with
// Options.ConfirmWithin then waits for the confirmation, too.
func (c *Controller) Continues(checked *check.Result) bool {
	t := c.decisions.Trial
	return c.options.ConfirmWithin > 0 && t != nil && t.Source == c.servedID(checked) && !c.isPaused() && !t.IsOverdue(c.clock)
}

// overdue reports whether the time of the trial is over. A trial that can't be undone waits for an operator.
func (c *Controller) overdue() bool {
	t := c.decisions.Trial
	return t != nil && t.Stuck == "" && t.IsOverdue(c.clock)
}

// lapsed returns the Decision to undo a trial because its time is over.
func lapsed(t *operator.Trial, clock operator.Clock) control.Decision {
	reason := fmt.Sprintf("nobody confirmed snapshot %s until %s", t.Snapshot, t.Ends.At.UTC().Format(time.RFC3339))
	return control.Decision{By: t.By, Reason: reason, Since: clock.Now()}
}

// startUndo pins the entry before the trial, so that the next publish undoes the trial. If the Result has an Outcome,
// it says why the entry can't be published; the trial is then stuck. source is nil if the source tree is unknown.
func (c *Controller) startUndo(ctx context.Context, who control.Decision, source *check.Result) (control.Result, error) {
	t := c.decisions.Trial
	pin := operator.Pin{
		Decision: who, Entry: t.Entry, Snapshot: t.Before, EntryTime: t.EntryTime, Undoes: true, WithSecrets: true, Waits: []string{t.Source},
	}
	if source != nil {
		pin.Waits = append(pin.Waits, c.servedID(source))
	}
	r, err := c.judgeUndo(ctx, &pin, source)
	if err != nil {
		return r, err
	}
	d := c.decisions
	if r.Outcome != "" {
		d.Stick(r.Message)
	} else {
		d.Pin(pin)
	}
	if err := d.Write(c.kept()); err != nil {
		return r, err
	}
	if c.decisions = d; r.Outcome != "" {
		c.log.Write(event.UndoFailed{Snapshot: t.Snapshot, Entry: t.Entry, Cause: r.Message})
		return c.notUndone(r), nil
	}
	c.log.Write(event.Undoing{By: who.By, Reason: who.Reason, Snapshot: t.Snapshot, Entry: t.Entry, EntryTime: t.EntryTime})
	return r, nil
}

// judgeUndo judges the snapshot of a pin that undoes the trial, and completes the pin.
func (c *Controller) judgeUndo(ctx context.Context, pin *operator.Pin, source *check.Result) (r control.Result, err error) {
	h, err := history.Read(c.kept().Path())
	if err != nil {
		return r, err
	}
	defer h.Close()
	if from, err := out(h, c.SnapshotID()); err == nil && from.ID != pin.Entry {
		pin.From = from.ID
	}
	p, err := c.loadPinned(pin.Entry)
	if err != nil {
		return stuck(err)
	}
	if err := c.suits(p.item); err != nil {
		return control.Result{Outcome: control.Refused, Message: err.Error()}, nil
	}
	checked, err := p.judged(ctx, c, pin, source)
	if err != nil {
		return r, err
	}
	plan, err := c.plan(ctx, checked, planning{}) // an undo removes what the change has added, however much that is
	switch {
	case err != nil || ctx.Err() != nil:
		return r, cmp.Or(err, ctx.Err())
	case plan == nil:
		r = resultOf(outcomeOf(Invalid, checked, nil, pipeline.Result{}))
		r.Message = fmt.Sprintf("entry %s can't be published today: %s", pin.Entry, r.Message)
		if first := firstError(checked.Diagnostics, c.refuses()); first != "" {
			r.Message += ": " + first
		}
	case plan.Held != nil:
		r = resultOf(outcomeOf(Held, checked, plan, pipeline.Result{}))
	}
	c.pin = p
	return r, nil
}

// stuck returns an error of the history as the Result that an entry can't be published. Other errors may pass.
func stuck(err error) (control.Result, error) {
	_, damaged := errors.AsType[*history.DamagedError](err)
	_, unknown := errors.AsType[*history.UnknownError](err)
	if damaged || unknown {
		return control.Result{Outcome: control.Refused, Message: err.Error()}, nil
	}
	return control.Result{}, err
}

// undone returns the Result of an undo.
func (c *Controller) undone(o Outcome, pin *operator.Pin) control.Result {
	r := resultOf(o)
	if o.Verdict != Published {
		return c.notUndone(r)
	}
	r.Outcome, r.Pinned = control.Undone, new(pin.Shown())
	r.Message = fmt.Sprintf("undone: entry %s of %s is published again, %s; the source tree waits until it changes, or until xdspub resume --out %s",
		pin.Entry, pin.EntryTime.Format(time.RFC3339), r.Message, c.place())
	return r
}

// notUndone returns the Result of an undo that has failed. r says why.
func (c *Controller) notUndone(r control.Result) control.Result {
	r.Message = "the change can't be undone: " + r.Message
	r.Trial = c.decisions.Trial.Shown(c.clock)
	return r
}

// publishPin publishes the snapshot of the pin, which it returns, without a source tree.
func (c *Controller) publishPin(ctx context.Context) (*check.Result, Outcome, error) {
	checked, err := c.pinned(ctx, nil)
	if err != nil {
		return nil, Outcome{}, err
	}
	plan, err := c.Plan(ctx, checked)
	if err != nil {
		return nil, Outcome{}, err
	}
	if plan != nil {
		plan.Revision = &c.pin.item.Revision
	}
	o, err := c.Publish(ctx, checked, plan)
	o.Pin = c.decisions.Pinned
	c.Record(ctx, checked, o)
	return checked, o, errors.Join(err, c.pinTried(o))
}
