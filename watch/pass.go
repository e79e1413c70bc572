package watch

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"time"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/validate"
	"xdspub/watch/control"
	"xdspub/watch/notify"
	"xdspub/xds"
)

// pass is one attempt at a reconcile.
type pass struct {
	reason    string
	found     *look
	checked   *check.Result // of the source tree
	publishes *check.Result // the same, or the snapshot of a pin
	whole     bool          // the whole tree was read since the last pass
	idle      idlePass      // kept at the end if no file has moved
	read      time.Duration // the time to read and check the source tree
	planned   time.Duration // the time to plan the files
	bound     *xds.Snapshot // what the plan publishes, as Envoy gets it; nil without files
}

// idlePass describes a pass that planned all files and moved none: what the pass saw.
type idlePass struct {
	snapshot *xds.Snapshot
	findings diag.List // of the source tree
	moves    int       // Controller.moves
}

// attempts is the largest number of passes of a reconcile while somebody removes or replaces the output
// directory.
const attempts = 3

// reconcile reads the tree and publishes it. The Outcome is zero if reconcile ends before Publish.
func (w *watching) reconcile(ctx context.Context, n news) (o Outcome, err error) {
	for range attempts {
		o, err = w.reconcileOnce(ctx, n)
		for errors.Is(err, errOutdated) && ctx.Err() == nil {
			o, err = w.reconcileOnce(ctx, n) // with the newer look
		}
		if !errors.Is(err, publish.ErrLost) || ctx.Err() != nil {
			return o, err
		}
		n.wanted = w.source.want(n.reason)
	}
	return Outcome{}, fmt.Errorf("somebody removed or replaced the output directory %s during each of %d attempts to publish; the next reconcile tries again: %w",
		w.given, attempts, err)
}

// reconcileOnce runs one pass. publish.ErrLost means that the output directory was removed or replaced during
// the pass. errOutdated means that a newer look replaced the look of the pass.
func (w *watching) reconcileOnce(ctx context.Context, n news) (o Outcome, err error) {
	before := w.seen
	w.seen = 0
	read := w.stage("read")
	lookCtx, stop := w.untilTrialEnds(ctx)
	defer stop()
	found, err := w.source.look(lookCtx, w, n.wanted)
	took := read()
	if ctx.Err() != nil {
		return o, nil
	}
	if err != nil {
		if lookCtx.Err() != nil {
			err = fmt.Errorf("the source tree was not read until a snapshot that nobody has confirmed had to be undone: %w", err)
		}
		return o, errors.Join(err, w.undoUnread(ctx, n.reason))
	}
	checked := w.take(found)
	if checked == nil {
		return o, nil
	}
	if found.agreement != nil { // an error or a panic is not an objection
		defer found.agreement.say(w.key(), nil)
	}
	o, err = w.pass(ctx, &pass{reason: n.reason, found: found, checked: checked, read: took, whole: found.whole > before})
	if err == nil {
		w.seen = found.n
		w.source.judged(found, o)
	}
	return o, err
}

func (w *watching) key() publisherKey { return publisherKey{w.target, w.given} }

// take applies the options of a look, and returns a copy of the target's result; nil if the target is gone.
func (w *watching) take(found *look) *check.Result {
	o, ok := found.options(w.key())
	if !ok {
		w.on(targetRemoved)
		return nil
	}
	if w.configured != found.read {
		w.configured, w.changeLog.whileRefused = found.read, o.WhileRefused
		w.Configure(o)
		w.on(reconfigured)
	}
	return found.result.For(w.target).Copy()
}

// pass executes a pass. After a look at the whole tree, the pass also reads the whole output directory. The
// reason may still be a change, because a rescan may be part of a burst of events.
func (w *watching) pass(ctx context.Context, p *pass) (Outcome, error) {
	w.Trust(!p.whole && w.state.trusted())
	if err := w.ready(ctx); err != nil {
		return Outcome{}, err
	}
	if p.whole && w.isIdle(p.checked) {
		return w.rest(ctx, p)
	}
	w.garbage = true
	p.idle = idlePass{p.checked.Variants.All(), slices.Clone(p.checked.Diagnostics), w.moves()}
	if p.whole {
		w.on(planAll)
	} else {
		w.on(planEdit)
	}
	planned := w.stage("plan")
	follows := p.checked
	if w.frozen != nil { // the source tree neither ends a pin nor rotates its secrets
		follows = nil
	}
	pinned, err := w.pinned(ctx, follows)
	if err != nil {
		return Outcome{}, err
	}
	if p.publishes = p.checked; pinned != nil {
		p.publishes = pinned
	}
	plan, err := w.Plan(ctx, p.publishes)
	p.planned = planned()
	if err == nil && pinned == nil {
		plan, err = w.agree(ctx, p.found, p.checked, plan)
	}
	if ctx.Err() != nil { // no file has moved
		return Outcome{}, nil
	}
	if err != nil {
		return Outcome{}, err
	}
	if plan != nil && plan.Held == nil && w.isPaused() {
		return w.wait(p, plan), nil
	}
	if plan != nil && plan.Held == nil && w.awaits(p.checked) {
		return w.waitFrozen(ctx, p, plan)
	}
	if pinned == nil {
		frozen, err := w.Frozen(ctx, p.checked, plan)
		if err != nil {
			return Outcome{}, err
		}
		if frozen != nil {
			return w.waitFrozen(ctx, p, plan)
		}
	}
	o, err := w.publish(ctx, p, plan)
	if pinned != nil && err == nil && o.Verdict != "" {
		return w.conclude(p, o)
	}
	return o, err
}

// isIdle reports whether the source tree, its findings and the output directory are unchanged since the
// idlePass. A pending trim doesn't matter, because trims have their own timer.
func (w *watching) isIdle(checked *check.Result) bool {
	return w.state.hasIdlePass() && checked.Variants.All() == w.idlePass.snapshot && reflect.DeepEqual(checked.Diagnostics, w.idlePass.findings) &&
		w.moves() == w.idlePass.moves && w.Settled()
}

// rest ends an idle pass without a plan.
func (w *watching) rest(ctx context.Context, p *pass) (Outcome, error) {
	snapshot := p.checked.Snapshot.ID()
	commit, err := w.keepRevision(ctx, snapshot)
	if err != nil {
		return Outcome{}, err
	}
	w.unrecorded = append(w.unrecorded, func() { w.recordCommit(ctx, p.checked, commit) })
	if p.reason == string(notify.Rescan) {
		w.source.foundNothing(p.found)
	}
	w.giveBack()
	return Outcome{Verdict: Published, Snapshot: snapshot, Summary: p.checked.Summary, Findings: p.checked.Diagnostics, WithoutFiles: !w.writes()}, nil
}

// publish executes the plan of a pass, and trims.
func (w *watching) publish(ctx context.Context, p *pass, plan *planner.Plan) (Outcome, error) {
	w.changeLog.checked(p.checked, p.checked.Invalid(w.options.WarningsAsErrors))
	w.showRead(p.checked)
	if plan != nil && plan.Held == nil {
		p.bound = plan.Bound
		w.publishing(plan.ID)
	}
	if p.publishes != p.checked && plan != nil {
		plan.Revision = &w.pin.item.Revision
	}
	publishing := w.PublishTree
	if p.publishes != p.checked {
		publishing = w.Publish
	}
	o, err := publishing(ctx, p.publishes, plan)
	if p.publishes != p.checked {
		if o.Pin = w.decisions.Pinned; !w.writes() {
			o.Revision = w.pin.item.Revision
		}
	}
	w.envoyLog.moved(o.Answers, p.idle.moves, w.moves())
	if errors.Is(err, publish.ErrLost) {
		return o, err
	}
	if o.Verdict != "" {
		w.changeLog.outcome(ctx, o, p)
	}
	if o.Verdict == Published {
		w.shown.CertificateExpires = validate.Expiry(w.toPublish(p.publishes))
		if w.writes() {
			w.shown.Inotify = &control.Inotify{Used: plan.Watches, Budget: w.options.InotifyBudget}
		}
		w.on(planPublished)
		w.confirmed(o)
	}
	whole := o
	w.unrecorded = append(w.unrecorded, func() { w.Record(ctx, p.publishes, whole) })
	switch {
	case p.publishes != p.checked:
	case whole.Approval != nil: // until the history has it, a kill must not lose it
		w.unrecorded = append(w.unrecorded, func() { w.settle(whole, p.reason) })
	default:
		w.settle(whole, p.reason)
	}
	if err == nil && p.publishes == p.checked {
		err = w.publishPart(ctx, p, &o)
	}
	if err != nil {
		return o, err
	}
	err = w.trim(ctx)
	if err == nil && p.publishes == p.checked && o.Verdict == Published {
		err = w.endPin()
	}
	if err == nil && p.publishes == p.checked && p.whole && o.Verdict == Published && p.idle.moves == w.moves() {
		w.idlePass = p.idle
		w.on(movedNothing)
	}
	return o, err
}

// publishPart publishes a part of a source tree that is refused, or that a freeze holds, and adds what goes on to the
// outcome o of the source tree.
func (w *watching) publishPart(ctx context.Context, p *pass, o *Outcome) error {
	refused := o.Verdict == Invalid || o.Verdict == Held || o.Verdict == RefusedByEnvoy && o.Restored && !o.kept()
	waits := o.Verdict == Waits && len(w.options.WhileRefused) > 0
	if !w.publishesParts() || !refused && !waits {
		return nil
	}
	if o.Verdict != Invalid { // the last plan was not published
		w.Trust(false)
	}
	before, since := w.moves(), w.refusedSince(o.Snapshot, w.shown.Running.Began)
	part, err := w.PublishPart(ctx, p.checked, *o, since)
	w.envoyLog.moved(part.Outcome.Answers, before, w.moves())
	if err != nil || ctx.Err() != nil {
		return err
	}
	o.Part = &control.Part{WhileRefused: []string{}, Held: part.Held, OwnersWait: part.OwnersWait, Waits: part.Waits}
	if !part.TypesWait {
		o.Part.WhileRefused = append(o.Part.WhileRefused, w.options.WhileRefused...)
	}
	if last := w.shown.Refused; last != nil && last.Part != nil {
		o.Part.Time = last.Part.Time
	} else if last := w.shown.Waits; last != nil && last.Part != nil {
		o.Part.Time = last.Part.Time
	}
	w.changeLog.part(o.Part, part, since, p.reason)
	switch part.Outcome.Verdict {
	case Published:
		o.Part.Time = now()
		w.shown.CertificateExpires = validate.Expiry(w.live.snapshot)
		w.on(planPublished)
		w.confirmed(part.Outcome)
		of := w.live.snapshot
		w.unrecorded = append(w.unrecorded, func() { w.record(ctx, of, part.Outcome) })
	case Held, RefusedByEnvoy:
		w.on(planRefused)
	}
	return nil
}

// refusedSince returns since when the source tree is refused. snapshot is the id of the held snapshot; empty if
// validation refuses the source tree. began is the beginning of the pass.
func (w *watching) refusedSince(snapshot string, began time.Time) time.Time {
	switch r := w.shown.Refused; {
	case r != nil && (r.Snapshot == snapshot || r.Part != nil):
		return r.Since
	case w.shown.Waits != nil && w.shown.Waits.Snapshot == snapshot && snapshot != "":
		return w.shown.Waits.Since
	case r == nil && w.part() != nil: // published before this process began
		return w.part().Since
	}
	return began
}

// giveBack compresses the source tree in memory and returns free memory to the system, if a pass has made a
// plan since the last giveBack.
func (w *watching) giveBack() {
	if w.garbage && w.source.compress() {
		w.garbage = false
		debug.FreeOSMemory()
	}
}
