package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"xdspub/check"
	"xdspub/event"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/render/published"
	"xdspub/watch/control"
	"xdspub/watch/freeze"
	"xdspub/watch/part"
	"xdspub/xds"
	"xdspub/xds/variants"
)

// takeFreeze sets the freeze in force. A publish that has begun before a window goes on.
func (c *Controller) takeFreeze() { c.frozen = c.options.Freeze.At(c.clock.Day()) }

// Frozen returns the freeze that keeps the plan for a checked source tree from being published, after Prepare; nil if
// the plan may be published. A freeze does not hold the first snapshot, without which no Envoy starts, or a snapshot
// whose publish had begun before. Nor does it hold changes that Options.WhileRefused admits, or that an operator
// publishes.
func (c *Controller) Frozen(ctx context.Context, checked *check.Result, plan *planner.Plan) (*freeze.State, error) {
	if c.frozen == nil || plan == nil || plan.Held != nil {
		return nil, nil
	}
	changes := c.served != nil && c.servedID(checked) != c.idOf(c.served)
	if c.writes() && c.SnapshotID() != "" {
		now, err := c.standing()
		if err != nil || now.interrupted == plan.ID {
			return nil, err
		}
		changes = changes || now.snapshot != plan.ID
	}
	if !changes {
		return nil, nil
	}
	goesOn, err := c.goesOnWhole(ctx, checked)
	if goesOn || err != nil || c.overrides() {
		return nil, err
	}
	return c.frozen, nil
}

// overrides reports whether an operator publishes during the freeze in force. overrides logs the first true result for
// each request of an operator. So call overrides only before a publish that the freeze would hold.
func (c *Controller) overrides() bool {
	d := c.through
	if d == nil || c.frozen == nil {
		return false
	}
	if !c.overridden {
		c.overridden = true
		c.log.Write(event.FreezeOverridden{By: d.By, Reason: d.Reason, Until: c.frozen.Until})
	}
	return true
}

// goesOnWhole reports whether the change to a checked source tree has only changes that Options.WhileRefused admits.
func (c *Controller) goesOnWhole(ctx context.Context, checked *check.Result) (bool, error) {
	if len(c.options.WhileRefused) == 0 || len(checked.ClientsUnknownIn) > 0 {
		return false, nil
	}
	read, faults := c.toPublish(checked), part.FaultsOf(nil, c.refuses())
	from, err := c.liveFor(ctx, read, faults)
	if _, notLive := errors.AsType[*published.NotLiveError](err); notLive || err != nil {
		if notLive {
			err = nil
		}
		return false, err
	}
	change := part.Admit(from, read, part.TypesOf(c.options.WhileRefused), faults)
	return read.Diff(from.Apply(change)).Empty(), nil
}

// FrozenIn returns the freeze that would keep a snapshot from being published now into the output directory of o, which
// need not be locked; nil if the snapshot would be published.
func FrozenIn(o Options, snapshot string) (*freeze.State, error) {
	m, err := publish.ReadManifest(o.Out)
	if err != nil || m.Snapshot == "" || m.Snapshot == snapshot {
		return nil, err
	}
	return o.Freeze.At(time.Now()), nil
}

// idOf returns the servedID of a snapshot that is served.
func (c *Controller) idOf(served *xds.Snapshot) string {
	if c.options.Source.Client != nil {
		return served.ID()
	}
	return variants.Of(served).ID()
}

// frozenText returns why a change may not be published during a freeze, with the remedy; empty if it may be.
func (c *Controller) frozenText() string {
	if c.frozen == nil || c.through != nil {
		return ""
	}
	if c.place() == "" {
		return fmt.Sprintf("publishing is frozen %s", c.frozen)
	}
	return fmt.Sprintf("publishing into %s is frozen %s; xdspub resume --out %s --reason TEXT publishes nevertheless", c.place(), c.frozen, c.place())
}

// publishedAgain returns the published snapshot as the result of a check; nil if the snapshot is unknown.
func (c *Controller) publishedAgain(ctx context.Context) (*check.Result, error) {
	if c.live.of != nil && c.live.part == nil {
		return c.live.of.Copy(), nil
	}
	s := c.live.snapshot
	if s == nil {
		var err error
		if s, err = c.latest(); s == nil || err != nil {
			return nil, err
		}
	}
	if c.again.result == nil || c.again.of != s {
		result, err := c.judgeAgain(ctx, "the published snapshot", s)
		if err != nil {
			return nil, err
		}
		c.again = again{s, result}
	}
	return c.again.result.Copy(), nil
}

// again is the published snapshot as it was judged again.
type again struct {
	of     *xds.Snapshot
	result *check.Result
}

// mend publishes the published snapshot again, while the source tree waits: files that somebody has edited are
// restored, and a Server that has begun during a freeze serves the snapshot. The Outcome is zero if the snapshot is
// unknown.
func (c *Controller) mend(ctx context.Context) (Outcome, error) {
	if !c.writes() {
		return Outcome{}, nil
	}
	checked, err := c.publishedAgain(ctx)
	if checked == nil || err != nil {
		return Outcome{}, err
	}
	m, err := c.dir.Reader().Manifest()
	if err != nil {
		return Outcome{}, err
	}
	c.Trust(false)
	plan, _, err := c.planned(ctx, checked, c.part(), nil) // what is published removes nothing
	if err != nil || plan == nil || plan.Held != nil || plan.ID != m.Snapshot {
		return Outcome{}, err
	}
	plan.Revision = &m.Revision
	return c.Publish(ctx, checked, plan)
}

// waitFrozen ends a pass whose plan a freeze, or another snapshot on trial, keeps from being published. What earlier
// changes have begun goes on.
func (w *watching) waitFrozen(ctx context.Context, p *pass, plan *planner.Plan) (Outcome, error) {
	o := w.wait(p, plan)
	if w.frozenText() != "" {
		if err := w.publishPart(ctx, p, &o); err != nil || ctx.Err() != nil {
			return o, err
		}
	}
	if waits := w.shown.Waits; waits != nil && o.Part != nil {
		w.shown.Waits = &control.Waits{Since: waits.Since, Snapshot: waits.Snapshot, Part: o.Part} // clients may read the other
	}
	if p.whole || w.options.Server != nil && w.served == nil {
		before := w.moves()
		mended, err := w.mend(ctx)
		w.envoyLog.moved(mended.Answers, before, w.moves())
		switch mended.Verdict {
		case Published:
			w.confirmed(mended)
		case RefusedByEnvoy:
			w.changeLog.outcome(ctx, mended, p)
		}
		if err != nil {
			return o, err
		}
	}
	return o, w.trim(ctx)
}

// sayFreeze logs that a freeze has begun or ended since the freeze was, and shows the freeze.
func (w *watching) sayFreeze(was *freeze.State) {
	is := w.frozen
	switch {
	case is.Equal(was):
		return
	case is == nil:
		w.log.Write(event.FreezeEnded{Since: was.Since, Until: was.Until, Reason: was.Reason})
	default:
		w.log.Write(event.Frozen{Since: is.Since, Until: is.Until, Zone: is.Zone, Reason: is.Reason, Published: w.publishedID()})
	}
	w.showDecisions()
}

// freezeTimer returns a channel that receives when a freeze may begin or end, and a function that stops the timer.
// Without windows the channel is nil. Somebody may set the clock, so the timer is short.
func (w *watching) freezeTimer() (<-chan time.Time, func()) {
	if len(w.options.Freeze) == 0 && w.frozen == nil {
		return nil, func() {}
	}
	left := pauseLook
	if w.frozen != nil {
		left = min(left, max(w.frozen.Until.Sub(w.clock.Day()), 0))
	}
	timer := time.NewTimer(left)
	return timer.C, func() { timer.Stop() }
}

// freezeMayChange looks at the clock. If a freeze has ended, freezeMayChange publishes what waits.
func (w *watching) freezeMayChange(ctx context.Context) {
	was := w.frozen
	w.takeFreeze()
	w.sayFreeze(was)
	if was != nil && w.frozen == nil && ctx.Err() == nil {
		w.turn(ctx, thawing)
	}
}

// letThrough publishes the source tree during a freeze, this once, because an operator asks for it.
func (w *watching) letThrough(ctx context.Context, d control.Decision) (control.Result, error) {
	w.through, w.overridden = &d, false
	defer func() { w.through = nil }()
	return w.turn(ctx, resuming)
}
