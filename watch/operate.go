package watch

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"xdspub/event"
	"xdspub/render/planner"
	"xdspub/watch/control"
	"xdspub/watch/operator"
	"xdspub/watch/pipeline"
)

// wait ends a pass whose plan a decision of an operator, or a freeze, keeps from being published.
func (w *watching) wait(p *pass, plan *planner.Plan) Outcome {
	w.changeLog.checked(p.checked, false)
	w.showRead(p.checked)
	w.on(planWaits)
	o := w.sourceWaits(p, plan)
	if p.publishes == p.checked {
		w.settle(o, p.reason)
	}
	return o
}

// sourceWaits returns the Outcome of a pass whose valid source tree waits, and logs a snapshot that waits for the first
// time.
func (w *watching) sourceWaits(p *pass, plan *planner.Plan) Outcome {
	o := outcomeOf(Waits, p.checked, plan, pipeline.Result{})
	o.Decision = cmp.Or(w.Waits(), w.frozenText())
	served := w.options.Server != nil && w.served != nil && w.servedID(p.checked) != w.changeLog.served
	if o.Snapshot == w.publishedID() && !served {
		w.shown.Waits = nil
		return o
	}
	if waits := w.shown.Waits; waits == nil || waits.Snapshot != o.Snapshot || asked(p.reason) {
		w.log.Write(event.SnapshotWaits{Snapshot: o.Snapshot, Published: w.publishedID()})
	}
	if waits := w.shown.Waits; waits == nil || waits.Snapshot != o.Snapshot {
		w.shown.Waits = &control.Waits{Since: now(), Snapshot: o.Snapshot}
	}
	return o
}

// decider returns the decider for the open directory. An error means that the directory can't keep a decision now.
func (w *watching) decider() (decider, error) {
	if w.kept() == nil || w.Lost() {
		return decider{}, fmt.Errorf("the directory %s was removed or replaced: ask again after the next pass", cmp.Or(w.given, w.options.State))
	}
	return decider{dir: w.kept(), out: w.place(), now: w.SnapshotID(), clock: w.clock, log: w.log}, nil
}

// pause executes a request to pause.
func (w *watching) pause(asked control.Pause) (result control.Result, err error) {
	d, err := w.decider()
	if err != nil {
		return result, err
	}
	decisions, result, err := d.pause(asked)
	if err != nil {
		return result, err
	}
	w.decisions, w.nextTrim = decisions, time.Time{}
	w.shown.NextTrim = time.Time{}
	w.showDecisions()
	return result, nil
}

// resume executes a request to resume, and publishes what waits.
func (w *watching) resume(ctx context.Context, asked control.Resume) (result control.Result, err error) {
	d, err := w.decider()
	if err != nil {
		return result, err
	}
	through := control.Decision{By: asked.By, Reason: asked.Reason, Since: w.clock.Now()}
	if err := through.Check(); asked.Reason != "" && err != nil {
		return result, &control.ConflictError{Reason: err.Error()}
	}
	decisions, result, err := d.resume(asked)
	if err != nil {
		return result, err
	}
	was := w.frozen
	w.takeFreeze()
	w.sayFreeze(was)
	w.decisions = decisions
	switch unchanged := result.Outcome == control.Unchanged; {
	case w.frozen != nil && asked.Reason != "":
		return w.letThrough(ctx, through)
	case w.frozen != nil && unchanged:
		return result, &control.ConflictError{Reason: w.frozenText()}
	case unchanged:
		return result, nil
	}
	return w.turn(ctx, resuming)
}

// showDecisions shows the decisions of the operators.
func (w *watching) showDecisions() {
	is := w.decisions.Shown(w.clock)
	w.shown.Paused, w.shown.Pinned, w.shown.Trial = is.Paused, is.Pinned, is.Trial
	if w.shown.Frozen = w.frozen; w.decisions.Mode() == operator.Follows && w.frozen == nil {
		w.shown.Waits = nil
	}
	w.shown.Guarded, w.shown.Approved = w.decisions.Guarded, w.decisions.ShownApproval()
	w.show()
}

// sayDecisions logs the decisions of operators that are in force at the start. If the decisions are unknown, the first
// pass says so.
func (w *watching) sayDecisions() {
	if w.kept() == nil {
		return
	}
	d, err := operator.Read(w.kept().Path())
	if err != nil {
		return
	}
	d.EndPause(w.clock)
	is, e := d.Shown(w.clock), event.DecisionsInForce{}
	if is.Paused != nil {
		e.Paused = is.Paused.String()
	}
	if is.Pinned != nil {
		e.Pinned = is.Pinned.String()
	}
	if is.Trial != nil {
		e.Trial = is.Trial.String()
	}
	if d.Guarded != nil {
		e.Guarded = d.Guarded.String()
	}
	if approved := d.ShownApproval(); approved != nil {
		e.Approved = approved.String()
	}
	if e != (event.DecisionsInForce{}) {
		w.log.Write(e)
	}
}

// pauseLook is the longest time between two looks at the clock during a pause: a timer stands still while the machine
// sleeps.
const pauseLook = 10 * time.Second

// pauseTimer returns a channel that receives when a pause may end by itself, and a function that stops the timer. The
// channel is nil without such a pause.
func (w *watching) pauseTimer() (<-chan time.Time, func()) {
	p := w.decisions.Paused
	if p == nil || p.Ends == nil {
		return nil, func() {}
	}
	timer := time.NewTimer(min(w.clock.Left(*p.Ends), pauseLook))
	return timer.C, func() { timer.Stop() }
}

// pauseMayEnd publishes what waits, if the time of the pause is over.
func (w *watching) pauseMayEnd(ctx context.Context) {
	if p := w.decisions.Paused; ctx.Err() == nil && w.clock.Left(*p.Ends) == 0 {
		w.turn(ctx, resuming)
	}
}

// keepDecisions writes the decisions into a directory that has replaced the directory in which they were taken. So a
// watch also leaves alone what somebody puts there during a pause.
func (w *watching) keepDecisions() error {
	w.decisions.Trial = nil // the directory does not have its snapshot
	if w.decisions.Mode() == operator.Follows {
		return nil
	}
	return w.decisions.Write(w.kept())
}
