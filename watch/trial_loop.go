package watch

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"xdspub/check"
	"xdspub/render/history"
	"xdspub/watch/control"
)

// trialTimer returns a channel that receives when the time of the trial may be over, and a function that stops the
// timer. The channel is nil without a trial.
func (w *watching) trialTimer() (<-chan time.Time, func()) {
	t := w.decisions.Trial
	if t == nil || t.Stuck != "" {
		return nil, func() {}
	}
	wait := min(w.clock.Left(t.Ends), pauseLook)
	if again := pauseLook - time.Since(w.undoTried); !w.undoTried.IsZero() {
		wait = max(wait, again)
	}
	timer := time.NewTimer(wait)
	return timer.C, func() { timer.Stop() }
}

// answerFirst executes a request that has come before the time of the trial was over, while the watch was busy.
func (w *watching) answerFirst(ctx context.Context) (answered bool) {
	if !w.overdue() {
		return false
	}
	select {
	case r := <-w.control.Requests():
		w.serve(ctx, r)
		return true
	default:
		return false
	}
}

// trialMayEnd undoes the trial if its time is over.
func (w *watching) trialMayEnd(ctx context.Context) {
	if ctx.Err() != nil || !w.overdue() || w.answerFirst(ctx) {
		return
	}
	w.undoTried = time.Now()
	if _, err := w.undo(ctx, lapsed(w.decisions.Trial, w.clock)); err == nil {
		w.undoTried = time.Time{}
	}
}

// undo undoes the trial. The error is that of a pass, which the log has.
func (w *watching) undo(ctx context.Context, who control.Decision) (control.Result, error) {
	if err := w.ready(ctx); err != nil {
		w.changeLog.failure(ctx, err, undoing)
		return control.Result{}, err
	}
	if w.decisions.Trial == nil { // somebody has replaced the directory
		return control.Result{}, &control.ConflictError{Reason: fmt.Sprintf("nothing in %s awaits confirmation", w.place())}
	}
	var source *check.Result
	if last := w.source.last.Load(); last != nil && last.result != nil {
		source = last.result.For(w.target).Copy()
	}
	w.Trust(false)
	w.on(planWaits) // the plan that judges the snapshot is not published
	r, err := w.startUndo(ctx, who, source)
	w.showDecisions()
	if err != nil {
		w.changeLog.failure(ctx, err, undoing)
	}
	if err != nil || r.Outcome != "" {
		return r, err
	}
	pin := w.decisions.Pinned
	w.rolled = nil
	r, err = w.turn(ctx, undoing)
	if w.rolled == nil {
		r.Message = fmt.Sprintf("%s; the next pass continues", cmp.Or(r.Message, "the undo is not complete"))
		return r, err
	}
	o := *w.rolled
	if o.Verdict == Published {
		return w.undone(o, pin), nil // whatever the source tree is
	}
	_, err = w.turn(ctx, resuming) // shows again what is published
	return w.undone(o, pin), err
}

// untilTrialEnds returns a context for reading the source tree. It ends when a trial must be undone: a read may hang in
// a network file system, and an undo does not need the source tree.
func (w *watching) untilTrialEnds(ctx context.Context) (context.Context, context.CancelFunc) {
	switch t, pin := w.decisions.Trial, w.decisions.Pinned; {
	case t != nil && t.Stuck == "":
		return context.WithTimeout(ctx, max(w.clock.Left(t.Ends), pauseLook))
	case pin != nil && pin.Trial != nil && pin.Undoes:
		return context.WithTimeout(ctx, pauseLook)
	}
	return ctx, func() {}
}

// undoUnread publishes the snapshot of a pin that undoes a trial, while the source tree can't be read.
func (w *watching) undoUnread(ctx context.Context, reason string) error {
	if w.kept() == nil || w.Lost() {
		return nil
	}
	if err := w.takeDecisions(); err != nil {
		return err
	}
	if pin := w.decisions.Pinned; pin == nil || pin.Done || !pin.Undoes {
		return nil
	}
	w.Trust(false)
	if err := w.ready(ctx); err != nil {
		return err
	}
	moves := w.moves()
	checked, o, err := w.publishPin(ctx)
	w.envoyLog.moved(o.Answers, moves, w.moves())
	w.on(planWaits)
	if o.Verdict == "" {
		return err
	}
	w.rolled = &o
	w.changeLog.outcome(ctx, o, &pass{reason: reason, checked: checked, publishes: checked})
	if o.Verdict == Published {
		w.confirmed(o)
	}
	return err
}

// confirm executes a request to keep the snapshot of the trial, and publishes what waits.
func (w *watching) confirm(ctx context.Context, asked control.Confirm) (control.Result, error) {
	d, err := w.decider()
	if err != nil {
		return control.Result{}, err
	}
	decisions, result, err := d.confirm(asked)
	if err != nil || result.Outcome == control.Unchanged {
		return result, err
	}
	w.decisions, w.entered.outcome = decisions, history.Confirmed
	waits := w.shown.Waits != nil
	w.showDecisions()
	if !waits {
		return result, nil
	}
	next, err := w.turn(ctx, confirming)
	if err != nil {
		next.Message = err.Error() // the snapshot is confirmed nevertheless
	}
	if next.Message != "" {
		result.Message += "; what has waited: " + next.Message
	}
	result.Trial = w.decisions.Trial.Shown(w.clock)
	return result, nil
}

// extend executes a request to set the end of the trial.
func (w *watching) extend(asked control.Extend) (control.Result, error) {
	d, err := w.decider()
	if err != nil {
		return control.Result{}, err
	}
	decisions, result, err := d.extend(asked)
	if err != nil {
		return result, err
	}
	w.decisions = decisions
	w.showDecisions()
	return result, nil
}

// cancel executes a request to undo the trial now.
func (w *watching) cancel(ctx context.Context, asked control.Cancel) (control.Result, error) {
	d, err := w.decider()
	if err != nil {
		return control.Result{}, err
	}
	if w.source.options.Conflict != nil {
		if reason := w.source.options.Conflict(w.shown.Source, control.RetryHeld{Flags: asked.Flags}); reason != "" {
			return control.Result{}, &control.ConflictError{Reason: fmt.Sprintf("the watch of %s undoes with its own options: %s", w.place(), reason)}
		}
	}
	who, r, err := d.mayCancel(w.decisions, asked)
	if err != nil || r.Outcome != "" {
		return r, err
	}
	return w.undo(ctx, who)
}
