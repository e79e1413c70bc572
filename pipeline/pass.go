package pipeline

import (
	"context"

	"xdspub/envoy"
	"xdspub/publish"
	"xdspub/xds"
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
	c := p.confirmation(nil, publish.Refusal{})
	if c != nil {
		unfinished, err := publish.ReadIntent(p.options.Out)
		if err != nil {
			return err
		}
		if unfinished != nil { // what can't be read back is told before anything goes back
			if err := c.read(); err != nil {
				return err
			}
		}
	}
	_, err := d.Recover(ctx, publish.Plan{Gap: p.options.StepGap, Confirm: c.confirmer()})
	return err
}

// Retry lets be tried again what Envoy refused: the snapshots that are held, and,
// with the next plan, each file that is out and that an Envoy does not run. Envoy
// reads a file again only when it moves.
func (p *Pipeline) Retry(ctx context.Context, d *publish.Dir) error {
	if err := d.Release(); err != nil {
		return err
	}
	if p.options.Envoys == nil {
		return nil
	}
	subs, err := p.currentSubscriptions()
	if err != nil {
		return err
	}
	p.republish = nil
	for _, look := range p.options.Envoys.ProbeInDetail(ctx, subs) {
		for _, s := range look.States {
			if s.StatPrefix != "" && s.State != envoy.Acked || s.API == xds.Listener.API && len(look.Refused) > 0 {
				p.republish = append(p.republish, s.File)
			}
		}
	}
	return nil
}

// Publish carries a plan out. An error means that it stopped: what was out or
// came out is whole, and the next plan goes on from there. A *publish.RefusedError
// alone means that Envoy refused it, and that what was out before is out again
// where there was something.
func (p *Pipeline) Publish(ctx context.Context, d *publish.Dir, plan *Plan) (Result, error) {
	c := p.confirmation(plan.snapshot, publish.Refusal{Snapshot: plan.ID, Delivery: plan.delivery})
	change := plan.Change
	change.Confirm, change.Republish = c.confirmer(), p.republish
	p.republish = nil
	if plan.changed { // not in each pass: git may take its time
		change.Manifest.Revision = revision(ctx, p.options.Source)
	}
	published, err := d.Publish(ctx, change)
	result := Result{Result: published}
	if c != nil {
		result.Outcomes = c.outcomes
	}
	if err != nil {
		return result, err
	}
	return result, d.Release()
}
