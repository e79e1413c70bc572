package pipeline

import (
	"context"
	"time"

	"xdspub/envoy"
	"xdspub/publish"
)

// Result is what became of a plan.
type Result struct {
	publish.Result
	// Outcomes are what Envoys made of the steps that one of them follows, in their
	// order.
	Outcomes []envoy.Outcome
}

// Recover goes on with what a writer that was killed had begun to put back. It
// comes before Plan: what is out may change.
func (p *Pipeline) Recover(ctx context.Context, d *publish.Dir) error {
	c, err := p.confirmation(nil, "")
	if err != nil {
		return err
	}
	_, err = d.Recover(ctx, publish.Plan{Gap: p.options.StepGap, Confirm: c.confirmer()})
	return err
}

// Publish carries a plan out. An error means that it stopped: what was out or
// came out is whole, and the next plan goes on from there. A *publish.RefusedError
// alone means that Envoy refused it, and that what was out before is out again
// where there was something.
func (p *Pipeline) Publish(ctx context.Context, d *publish.Dir, plan *Plan) (Result, error) {
	c, err := p.confirmation(plan.snapshot, plan.ID)
	if err != nil {
		return Result{}, err
	}
	change := plan.Change
	change.Confirm = c.confirmer()
	if plan.other { // not in each pass: git may take its time
		change.Manifest.Revision = revision(ctx, p.options.Source)
	}
	start := time.Now()
	published, err := d.Publish(ctx, change)
	result := Result{Result: published}
	if c != nil {
		result.Outcomes = c.outcomes
	}
	if err != nil {
		return result, err
	}
	// What goes was in use until just now.
	if took := time.Since(start); c != nil && took > time.Second {
		if err := p.restamp(ctx, d, plan.begun.Add(took), func(g publish.Going) bool { return g.Since.Equal(plan.begun) }); err != nil {
			return result, err
		}
	}
	return result, d.Release()
}
