package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"xdspub/event"
	"xdspub/render/history"
	"xdspub/render/publish"
	"xdspub/watch/control"
	"xdspub/watch/operator"
)

// Confirm keeps the snapshot on trial in the directory out, into which no watch publishes. The error is a
// *publish.LockedError if another process publishes into it, and a *control.ConflictError if no such snapshot is on
// trial.
func Confirm(out string, asked control.Confirm) (control.Result, error) {
	return alone(out, func(d decider) (control.Result, error) {
		_, result, err := d.confirm(asked)
		return result, err
	})
}

// Extend sets the end of the trial in the directory out, into which no watch publishes. The errors are those of
// Confirm.
func Extend(out string, asked control.Extend) (control.Result, error) {
	return alone(out, func(d decider) (control.Result, error) {
		_, result, err := d.extend(asked)
		return result, err
	})
}

// confirm records that a snapshot stays, and returns the decisions without its trial.
func (d decider) confirm(asked control.Confirm) (operator.Decisions, control.Result, error) {
	now, by, err := d.recorded(asked.By, asked.Reason)
	if err != nil {
		return now, control.Result{}, err
	}
	if asked.Snapshot == "" { // the operator must name the snapshot
		return now, control.Result{}, &control.ConflictError{Reason: "the id of the snapshot is missing"}
	}
	if r, ok := d.endedBefore(now, asked.Snapshot, operator.Confirmed); ok {
		return now, r, nil
	}
	t, err := d.onTrial(now, asked.Snapshot)
	if err == nil && t.Stuck == "" && t.IsOverdue(d.clock.Ago(asked.Waited)) {
		err = d.tooLate(t)
	}
	if err != nil {
		return now, control.Result{}, err
	}
	now.Confirm(by)
	if err := now.Write(d.dir); err != nil {
		return now, control.Result{}, err
	}
	d.log.Write(event.Confirmed{By: by.By, Reason: by.Reason, Snapshot: t.Snapshot})
	d.note(t.Snapshot, by.By)
	message := fmt.Sprintf("snapshot %s is confirmed, and stays published", t.Snapshot)
	return now, control.Result{Outcome: control.Confirmed, Snapshot: t.Snapshot, Message: message}, nil
}

// note notes in the history that an operator has confirmed a snapshot.
func (d decider) note(snapshot, by string) {
	h, err := history.Read(d.dir.Path())
	if err == nil {
		var item history.Item
		if item, err = out(h, snapshot); err == nil {
			err = history.Open(d.dir, history.Options{Log: d.log}).Note(item.ID, history.Confirmed, by)
		}
		h.Close()
	}
	if err != nil {
		d.log.Write(event.HistoryFailed{Snapshot: snapshot, Error: err})
	}
}

// extend sets the end of the trial, and returns the decisions with the new end.
func (d decider) extend(asked control.Extend) (operator.Decisions, control.Result, error) {
	now, by, err := d.recorded(asked.By, asked.Reason)
	if err != nil {
		return now, control.Result{}, err
	}
	t, err := d.onTrial(now, asked.Snapshot)
	left := time.Duration(0)
	if err == nil {
		left = d.clock.Left(t.Ends)
	}
	switch length := time.Duration(asked.For * float64(time.Second)); {
	case err != nil:
	case t.Stuck != "":
		err = &control.ConflictError{Reason: fmt.Sprintf("%s: %s", t.Shown(d.clock), t.Shown(d.clock).WaysOut(d.out))}
	case t.IsOverdue(d.clock.Ago(asked.Waited)):
		err = d.tooLate(t)
	case asked.For <= 0 || asked.For > operator.MaxTrial.Seconds():
		err = &control.ConflictError{Reason: fmt.Sprintf("write a time above 0s, and of %s at most", operator.MaxTrial)}
	case length < left:
		err = &control.ConflictError{Reason: fmt.Sprintf("%s, which is later than %s from now", t.Shown(d.clock), length)}
	default:
		now.Extend(d.clock.In(length))
		err = now.Write(d.dir)
	}
	if err != nil {
		return now, control.Result{}, err
	}
	shown := now.Trial.Shown(d.clock)
	d.log.Write(event.ConfirmationExtended{By: by.By, Reason: by.Reason, Snapshot: shown.Snapshot, Until: shown.Until})
	return now, control.Result{Outcome: control.Extended, Snapshot: shown.Snapshot, Message: shown.String(), Trial: shown}, nil
}

// onTrial returns the trial whose snapshot has an id that begins with a prefix; an empty prefix stands for any id. The
// error is a *control.ConflictError.
func (d decider) onTrial(now operator.Decisions, prefix string) (*operator.Trial, error) {
	conflict := func(format string, args ...any) error {
		return &control.ConflictError{Reason: fmt.Sprintf(format, args...)}
	}
	t := now.Trial
	switch pin := now.Pinned; {
	case t == nil && pin != nil && pin.Trial != nil:
		return nil, conflict("snapshot %s is being undone: %s", pin.Trial.Snapshot, pin.Decision)
	case t == nil && now.Ended != nil:
		return nil, conflict("nothing in %s awaits confirmation: %s", d.out, now.Ended)
	case t == nil:
		return nil, conflict("nothing in %s awaits confirmation", d.out)
	case !t.Done:
		return nil, conflict("snapshot %s is not published completely: a watch, or render with the same source tree, continues", t.Snapshot)
	case prefix == "":
		return t, nil
	case len(prefix) < history.MinPrefix:
		return nil, conflict("%q is too short: write at least %d characters", prefix, history.MinPrefix)
	case !strings.HasPrefix(t.Snapshot, prefix):
		return nil, conflict("snapshot %q does not await confirmation: %s", prefix, t.Shown(d.clock))
	}
	if others, err := d.others(prefix, t.Snapshot); err != nil {
		return nil, err
	} else if len(others) > 0 {
		return nil, conflict("%q is the beginning of several ids of snapshots: %s awaits confirmation, and the history has %s: write more characters",
			prefix, t.Snapshot, strings.Join(others, ", "))
	}
	return t, nil
}

// mostOthers is the number of ids that others returns at most.
const mostOthers = 5

// others returns other snapshots of the history whose ids begin with a prefix.
func (d decider) others(prefix, snapshot string) (list []string, err error) {
	if prefix == snapshot {
		return nil, nil
	}
	h, err := history.Read(d.dir.Path())
	if err != nil {
		return nil, err
	}
	defer h.Close()
	seen := map[string]bool{snapshot: true}
	for _, i := range h.Items() {
		if strings.HasPrefix(i.Snapshot, prefix) && !seen[i.Snapshot] && len(list) < mostOthers {
			seen[i.Snapshot] = true
			list = append(list, i.Snapshot)
		}
	}
	return list, nil
}

// endedBefore returns the Result for an operator who asks for the end that the last trial has had; false if it had
// another one.
func (d decider) endedBefore(now operator.Decisions, prefix string, how operator.How) (control.Result, bool) {
	e := now.Ended
	if now.Trial != nil || e == nil || e.How != how || !strings.HasPrefix(e.Snapshot, prefix) || prefix != "" && len(prefix) < history.MinPrefix {
		return control.Result{}, false
	}
	return control.Result{Outcome: control.Unchanged, Snapshot: d.now, Message: e.String()}, true
}

// tooLate returns the answer to an operator who comes after the end of the trial.
func (d decider) tooLate(t *operator.Trial) error {
	shown := t.Shown(d.clock)
	return &control.ConflictError{Reason: fmt.Sprintf("it is too late: %s; %s", shown, shown.WaysOut(d.out))}
}

// mayCancel checks a request to undo the trial. If the Result has an Outcome, the trial is undone already.
func (d decider) mayCancel(now operator.Decisions, asked control.Cancel) (who control.Decision, r control.Result, err error) {
	if who, err = d.by(asked.By, asked.Reason); err != nil {
		return who, r, err
	}
	if r, ok := d.endedBefore(now, asked.Snapshot, operator.Undone); ok {
		return who, r, nil
	}
	_, err = d.onTrial(now, asked.Snapshot)
	return who, r, err
}

// Cancel undoes the snapshot on trial in an output directory into which no watch publishes. The errors are those of
// Confirm.
func Cancel(ctx context.Context, o Options, asked control.Cancel) (control.Result, error) {
	return undo(ctx, o, func(c *Controller) (control.Decision, control.Result, error) {
		d := decider{dir: c.kept(), out: o.Out, now: c.SnapshotID(), clock: c.clock, log: c.log}
		if p := c.decisions.Pinned; p != nil && p.Trial != nil {
			return p.Decision, control.Result{}, nil // a process was killed during the undo
		}
		return d.mayCancel(c.decisions, asked)
	})
}

// undo undoes the trial of an output directory, unless may returns an error, or a Result with an Outcome.
func undo(ctx context.Context, o Options, may func(*Controller) (control.Decision, control.Result, error)) (r control.Result, err error) {
	if err := isOutput(o.Out); err != nil {
		return r, err
	}
	if operator.IsServer(o.Out) {
		return r, fmt.Errorf("%s is the directory of serve --state, and no server runs: start the server, which undoes the change if nobody confirms it", o.Out)
	}
	c := New(o)
	if err := c.Open(); err != nil {
		return r, err
	}
	defer c.Close()
	if err := c.Prepare(ctx); err != nil {
		return r, err
	}
	who, r, err := may(c)
	if err != nil || r.Outcome != "" {
		return r, err
	}
	return c.Undo(ctx, who)
}

// Undo undoes the trial in the open output directory, after Prepare, without the source tree.
func (c *Controller) Undo(ctx context.Context, who control.Decision) (control.Result, error) {
	if c.decisions.Trial != nil {
		if r, err := c.startUndo(ctx, who, nil); err != nil || r.Outcome != "" {
			return r, err
		}
	}
	pin := c.decisions.Pinned
	_, o, err := c.publishPin(ctx)
	if err != nil {
		return resultOf(o), fmt.Errorf("%w; the next pass of a watch, or xdspub cancel, continues", err)
	}
	return c.undone(o, pin), nil
}

// UndoOverdue undoes the trial in the open output directory if its time is over, after Prepare. The Result has no
// Outcome if there is no such trial.
func (c *Controller) UndoOverdue(ctx context.Context) (control.Result, error) {
	if p := c.decisions.Pinned; p != nil && p.Trial != nil {
		return c.Undo(ctx, p.Decision)
	}
	if !c.overdue() {
		return control.Result{}, nil
	}
	return c.Undo(ctx, lapsed(c.decisions.Trial, c.clock))
}

const (
	// lookEvery is the time between two looks of Await at the trial.
	lookEvery = 100 * time.Millisecond
	// lastLooks is how often Await tries to undo the snapshot after the end of its context, while another process has
	// locked the directory.
	lastLooks = 20
)

// Await waits until an operator decides about the trial in an output directory, by commands of other processes, or
// until its time is over. Await then undoes the snapshot. Await does so, too, when ctx ends, because whoever could
// confirm may have lost the way to this machine; who says why. While a watch has locked the directory, the watch undoes
// the snapshot.
func Await(ctx context.Context, o Options, t control.Trial, who control.Decision) (control.Result, error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	work, done := context.WithoutCancel(ctx), ctx.Done()
	for last := 0; last < lastLooks; {
		r, err := awaited(work, o, t, ctx.Err() != nil, who)
		_, locked := errors.AsType[*publish.LockedError](err)
		switch {
		case err != nil && !locked && !errors.Is(err, errNotDue):
			return r, fmt.Errorf("snapshot %s stays published, and is not undone: %w; %s", t.Snapshot, err, t.WaysOut(o.Out))
		case r.Outcome != "":
			return r, nil
		case ctx.Err() != nil:
			last++
			done = nil
		}
		select {
		case <-done:
		case <-tick.C:
		}
	}
	message := fmt.Sprintf("%s; another process publishes into %s, and undoes the snapshot then", &t, o.Out)
	return control.Result{Outcome: control.Waiting, Snapshot: t.Snapshot, Message: message, Trial: &t}, nil
}

// errNotDue means that the time of a trial is not over.
var errNotDue = errors.New("the snapshot still awaits confirmation")

// awaited looks at a trial once. The Result has an Outcome if the trial has ended.
func awaited(ctx context.Context, o Options, t control.Trial, gone bool, who control.Decision) (r control.Result, err error) {
	now, err := operator.Read(o.Out)
	if err != nil {
		return r, err
	}
	if _, r, err := mayUndo(now, operator.SystemClock(), t, gone, who); err != nil || r.Outcome != "" {
		return r, err
	}
	return undo(ctx, o, func(c *Controller) (control.Decision, control.Result, error) {
		return mayUndo(c.decisions, c.clock, t, gone, who) // an operator may have decided meanwhile
	})
}

// mayUndo returns who undoes a trial. The Result has an Outcome if the trial has ended. The error is errNotDue if its
// time is not over, unless gone.
func mayUndo(now operator.Decisions, clock operator.Clock, t control.Trial, gone bool, who control.Decision) (
	by control.Decision, r control.Result, err error,
) {
	same := func(is *operator.Trial) bool {
		return is != nil && is.Snapshot == t.Snapshot && is.Since.Equal(t.Since)
	}
	is := now.Trial
	switch pin := now.Pinned; {
	case is == nil && pin != nil && same(pin.Trial):
		return pin.Decision, r, nil // another process was killed during the undo
	case !same(is):
		return by, endOf(now, t), nil
	case is.Stuck != "":
		shown := is.Shown(clock)
		return by, control.Result{Outcome: control.Refused, Snapshot: is.Snapshot, Message: shown.String(), Trial: shown}, nil
	case is.IsOverdue(clock):
		return lapsed(is, clock), r, nil
	case !gone:
		return by, r, errNotDue
	}
	who.Since = clock.Now()
	return who, r, nil
}

// endOf returns the Result of a trial that is no longer in force.
func endOf(now operator.Decisions, t control.Trial) control.Result {
	r := control.Result{Outcome: control.Refused, Snapshot: t.Snapshot, Message: fmt.Sprintf("snapshot %s no longer awaits confirmation", t.Snapshot)}
	e := now.Ended
	if e == nil || e.Snapshot != t.Snapshot {
		return r
	}
	r.Message = e.String()
	switch e.How {
	case operator.Confirmed:
		r.Outcome = control.Confirmed
	case operator.Undone:
		r.Outcome = control.Undone
	}
	return r
}
