package pipeline

import (
	"context"
	"slices"
	"time"

	"xdspub/envoy"
	"xdspub/publish"
	"xdspub/revision"
	"xdspub/xds"
)

// Result is the result of a Publish.
type Result struct {
	publish.Result
	// Outcomes are the answers of the Envoys to the steps, in their order. A step that no
	// Envoy is subscribed to has none.
	Outcomes []envoy.Outcome
}

// Recover completes the rollback that a killed writer began. Call it before Plan, since it
// may change the published files.
func (p *Pipeline) Recover(ctx context.Context, d *publish.Dir) error {
	c := p.confirmation(nil, publish.Refusal{})
	if c != nil {
		unfinished, err := publish.ReadIntent(p.options.Out)
		if err != nil {
			return err
		}
		if unfinished != nil { // a file that can't be read is an error before anything moves
			if err := c.read(); err != nil {
				return err
			}
		}
	}
	_, err := d.Recover(ctx, publish.Plan{Gap: p.options.StepGap, Confirm: p.confirmer(c, publish.Refusal{})})
	return err
}

// Retry releases the held snapshots, and makes the next Publish move each published file that
// an Envoy does not run: Envoy reads a file again only when it moves.
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
	for _, probe := range p.options.Envoys.ProbeInDetail(ctx, subs) {
		for _, s := range probe.States {
			if s.StatPrefix != "" && s.State != envoy.Acked || s.API == xds.Listener.API && len(probe.Refused) > 0 {
				p.republish = append(p.republish, s.File)
			}
		}
	}
	return nil
}

// Settled reports whether the output directory is as the last Plan and Publish left it, and no
// path subscription on record has drained since: Plan would come to the same.
func (p *Pipeline) Settled(d *publish.Dir, now time.Time) bool {
	if p.republish != nil || !d.AsLeft() {
		return false
	}
	m, err := p.out.Manifest()
	return err == nil && !slices.ContainsFunc(m.DrainingWatches, func(w publish.DrainingWatch) bool {
		return w.Since.After(now) || !w.Since.After(now.Add(-p.options.TrimDelay))
	})
}

// Publish carries a plan out. An error means that it stopped: each published file is whole,
// and the next plan starts from there. A *publish.RefusedError alone means that Envoy
// refused it, and that the rollback is complete.
func (p *Pipeline) Publish(ctx context.Context, d *publish.Dir, plan *Plan) (Result, error) {
	of := publish.Refusal{Snapshot: plan.ID, Delivery: plan.delivery}
	c := p.confirmation(plan.snapshot, of)
	change := plan.Change
	change.Confirm, change.Republish = p.confirmer(c, of), p.republish
	p.republish = nil
	if plan.changed { // not in each reconcile: git may be slow
		change.Manifest.Revision = revision.Of(ctx, p.options.Source)
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
