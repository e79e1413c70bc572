package watch

import (
	"errors"
	"fmt"
	"time"

	"xdspub/event"
	"xdspub/render/publish"
	"xdspub/watch/control"
	"xdspub/watch/operator"
)

// decider changes the decisions of operators about an output directory, which it has locked.
type decider struct {
	dir   *publish.Dir
	out   string // as messages name the directory
	now   string // the id of the published snapshot; empty for none
	clock operator.Clock
	log   *event.Log
}

// Pause pauses the directory out, into which no watch publishes. The error is a *publish.LockedError if another
// process publishes into it, and a *control.ConflictError if the directory is paused already.
func Pause(out string, asked control.Pause) (control.Result, error) {
	return alone(out, func(d decider) (control.Result, error) {
		_, result, err := d.pause(asked)
		return result, err
	})
}

// Resume ends the pause and the pin of the directory out, into which no watch publishes. The errors are those of Pause.
func Resume(out string, asked control.Resume) (control.Result, error) {
	return alone(out, func(d decider) (control.Result, error) {
		_, result, err := d.resume(asked)
		return result, err
	})
}

// alone calls decide with the locked directory out.
func alone(out string, decide func(decider) (control.Result, error)) (control.Result, error) {
	if err := isOutput(out); err != nil {
		return control.Result{}, err
	}
	dir, err := publish.Open(out, publish.Options{})
	if err != nil {
		return control.Result{}, err
	}
	defer dir.Close()
	c := &Controller{given: out, dir: dir}
	if operator.IsServer(out) {
		c = &Controller{state: dir}
		c.current = c.lastServed()
	}
	return decide(decider{dir: dir, out: out, now: c.SnapshotID(), clock: operator.SystemClock()})
}

// isOutput returns an error if the directory out is neither an output directory nor the state directory of a server.
func isOutput(out string) error {
	m, err := publish.ReadManifest(out)
	if err == nil && m.Layout == 0 && !operator.IsServer(out) {
		err = fmt.Errorf("nothing was published into %s: name the output directory of render, watch or serve, and with targets that of one target; "+
			"or the directory of serve --state", out)
	}
	return err
}

// maxPause is the longest time of a pause that ends by itself. A longer one would outlast people's memory.
const maxPause = 366 * 24 * time.Hour

// by returns the decision of an operator, made now. The error is a *control.ConflictError.
func (d decider) by(who, reason string) (control.Decision, error) {
	by := control.Decision{By: who, Reason: reason, Since: d.clock.Now()}
	if err := by.Check(); err != nil {
		return by, &control.ConflictError{Reason: err.Error()}
	}
	return by, nil
}

// recorded returns the decisions of the record, and a new decision of an operator. An error may be that of by.
func (d decider) recorded(who, reason string) (now operator.Decisions, by control.Decision, err error) {
	if by, err = d.by(who, reason); err == nil {
		now, err = operator.Read(d.dir.Path())
	}
	return now, by, err
}

// pause records a pause, and returns the decisions with it.
func (d decider) pause(asked control.Pause) (operator.Decisions, control.Result, error) {
	p := operator.Pause{Decision: control.Decision{By: asked.By, Reason: asked.Reason, Since: d.clock.Now()}}
	switch {
	case asked.For < 0 || asked.For > maxPause.Seconds():
		return operator.Decisions{}, control.Result{}, &control.ConflictError{Reason: fmt.Sprintf("a pause ends by itself after %s at most", maxPause)}
	case asked.For > 0:
		ends := d.clock.In(time.Duration(asked.For * float64(time.Second)))
		p.Ends = &ends
	}
	if err := p.Check(); err != nil {
		return operator.Decisions{}, control.Result{}, &control.ConflictError{Reason: err.Error()}
	}
	now, err := operator.Read(d.dir.Path())
	if err == nil {
		err = now.Pause(p, asked.Replace)
	}
	if _, ok := errors.AsType[*operator.TakenError](err); ok {
		return now, control.Result{}, &control.ConflictError{Reason: fmt.Sprintf("%s is %v; xdspub pause --replace changes the pause", d.out, err)}
	}
	if err == nil {
		err = now.Write(d.dir)
	}
	if err != nil {
		return now, control.Result{}, err
	}
	shown, snapshot, stays := p.Shown(d.clock), d.now, "nothing is published"
	if snapshot != "" {
		stays = fmt.Sprintf("snapshot %s stays published", snapshot)
	}
	d.log.Write(event.Paused{By: p.By, Reason: p.Reason, Until: shown.Until, Published: snapshot})
	message := fmt.Sprintf("publishing into %s is paused, %s; xdspub resume --out %s ends the pause", d.out, stays, d.out)
	if !shown.Until.IsZero() {
		message += ", or its end at " + shown.Until.Format(time.RFC3339)
	}
	trial := now.Trial.Shown(d.clock)
	if trial != nil {
		message += fmt.Sprintf("; %s; the pause does not stop the undo", trial)
	}
	return now, control.Result{Outcome: control.Paused, Snapshot: snapshot, Message: message, Paused: &shown, Trial: trial}, nil
}

// resume ends the pause and the pin, and returns the decisions without them. The Result says Resumed or Unchanged.
// resume replaces a damaged record.
func (d decider) resume(asked control.Resume) (operator.Decisions, control.Result, error) {
	now, err := operator.Read(d.dir.Path())
	damaged := errors.Is(err, operator.ErrDamaged)
	if err != nil && !damaged {
		return now, control.Result{}, err
	}
	paused, pinned := now.Resume()
	result := control.Result{Outcome: control.Unchanged, Snapshot: d.now, Message: fmt.Sprintf("publishing into %s is neither paused nor pinned", d.out)}
	if paused == nil && pinned == nil && !damaged {
		if result.Trial = now.Trial.Shown(d.clock); result.Trial != nil {
			result.Message += fmt.Sprintf("; %s: %s", result.Trial, result.Trial.WaysOut(d.out))
		}
		return now, result, nil
	}
	if failed := now.Write(d.dir); failed != nil {
		if damaged {
			failed = fmt.Errorf("%w; %w", err, failed)
		}
		return now, control.Result{}, failed
	}
	result.Outcome, result.Message = control.Resumed, fmt.Sprintf("publishing into %s is neither paused nor pinned any more", d.out)
	e := event.Resumed{By: asked.By}
	if pinned != nil {
		result.Message = fmt.Sprintf("the pin of %s %s has ended", d.out, pinned.Shown())
		e.PinnedBy, e.PinReason, e.PinnedSince = pinned.By, pinned.Reason, pinned.Since
	}
	if paused != nil {
		result.Message = fmt.Sprintf("the pause of %s %s has ended", d.out, paused.Decision)
		e.PausedBy, e.Reason, e.PausedSince = paused.By, paused.Reason, paused.Since
	}
	if paused != nil && pinned != nil {
		result.Message = fmt.Sprintf("the pause of %s %s, and the pin %s have ended", d.out, paused.Decision, pinned.Shown())
	}
	d.log.Write(e)
	return now, result, nil
}

// takeDecisions reads the decisions of the operators from the open directory. A pause whose time is over ends.
func (c *Controller) takeDecisions() error {
	d, err := operator.Read(c.kept().Path())
	if err != nil {
		return err
	}
	ended := d.EndPause(c.clock)
	if moved := d.Adjust(c.clock); ended != nil || moved {
		if err := d.Write(c.kept()); err != nil {
			return err
		}
	}
	if c.decisions = d; ended != nil {
		c.log.Write(event.PauseEnded{By: ended.By, Reason: ended.Reason, Since: ended.Since})
	}
	return c.completeTrial()
}

// Waits returns why the source tree must not be published, with the remedy, after Prepare; empty if it may be.
func (c *Controller) Waits() string {
	switch is := c.decisions.Shown(c.clock); {
	case is.Paused != nil:
		return fmt.Sprintf("publishing into %s is paused %s; xdspub resume --out %s ends the pause", c.place(), is.Paused, c.place())
	case is.Trial != nil:
		return fmt.Sprintf("%s; %s", is.Trial, is.Trial.WaysOut(c.place()))
	case is.Pinned != nil:
		return fmt.Sprintf("publishing into %s is pinned %s; xdspub resume --out %s ends the pin", c.place(), is.Pinned, c.place())
	}
	return ""
}

// isPaused reports whether no file of the output directory may change, and no client may get anything new.
func (c *Controller) isPaused() bool { return c.decisions.Mode() == operator.Paused }
