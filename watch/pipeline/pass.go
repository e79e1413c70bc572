package pipeline

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"xdspub/envoy"
	"xdspub/render/confirm"
	"xdspub/render/planner"
	"xdspub/render/publish"
)

// Result is the result of a Publish.
type Result struct {
	publish.Result
	// Outcomes are the answers of the Envoys to the steps, in their order. A step that no
	// Envoy is subscribed to has none.
	Outcomes []envoy.Outcome
	// Revision is the git commit of the source tree, empty if there is none.
	Revision string
}

// KeepRevision records the git commit of a source tree whose snapshot is published already.
func (p *Pipeline) KeepRevision(ctx context.Context, d *publish.Dir, snapshot string) error {
	return d.SetRevision(snapshot, p.revision(ctx))
}

// Recover completes the rollback that a killed writer began. Call it before Plan, since it
// may change the published files.
func (p *Pipeline) Recover(ctx context.Context, d *publish.Dir) error {
	c := p.envoys.Change(nil, publish.Refusal{})
	if err := c.Recovers(); err != nil {
		return err
	}
	_, err := d.Recover(ctx, publish.Plan{Gap: p.stepGap, Confirm: c.Confirmer()})
	return err
}

// Retry releases the held snapshots, and makes the next Publish move each published file that
// an Envoy does not run: Envoy reads a file again only when it moves.
func (p *Pipeline) Retry(ctx context.Context, d *publish.Dir) error {
	if err := d.Release(); err != nil {
		return err
	}
	files, err := p.envoys.NotRunning(ctx)
	if err == nil {
		p.republish = files
	}
	return err
}

// Running asks each Envoy what it runs of the published files (confirm.Envoys.Running).
func (p *Pipeline) Running(ctx context.Context) ([]confirm.Running, error) {
	return p.envoys.Running(ctx)
}

// Settled reports whether the output directory is as the last Plan and Publish left it, no
// path subscription on record has drained since, and no time on record is in the future: somebody has set the clock back.
// Plan would then return the same plan, and a trim would be due at the same time.
func (p *Pipeline) Settled(d *publish.Dir, now time.Time) bool {
	if p.republish != nil || !d.AsLeft() {
		return false
	}
	m, err := p.out.Manifest()
	return err == nil && !slices.ContainsFunc(m.DrainingWatches, func(w publish.DrainingWatch) bool {
		return w.Since.After(now) || !w.Since.After(now.Add(-p.trimDelay))
	}) && !slices.ContainsFunc(m.Retired, func(g publish.Retired) bool { return g.Since.After(now) })
}

// Publish carries a plan out. An error means that it stopped: each published file is whole,
// and the next plan starts from there. A *publish.RefusedError alone means that Envoy
// refused it, and that the rollback is complete.
func (p *Pipeline) Publish(ctx context.Context, d *publish.Dir, plan *planner.Plan) (Result, error) {
	c := p.envoys.Change(plan.Snapshot, publish.Refusal{Snapshot: plan.ID, Delivery: plan.Delivery})
	change := plan.Change
	change.Confirm, change.Republish = c.Confirmer(), p.republish
	p.republish = nil
	var commit string
	var asking sync.WaitGroup
	// Git may be slow, and no file waits for it. It is asked at once: the tree may be that of
	// another commit by the time that all Envoys have answered.
	asking.Go(func() { commit = p.revision(ctx) })
	if plan.Replaces {
		change.Manifest.Revision = ""
	}
	published, err := d.Publish(ctx, change)
	asking.Wait()
	result := Result{Result: published, Outcomes: c.Outcomes(), Revision: commit}
	if err != nil {
		return result, err
	}
	return result, errors.Join(d.SetRevision(plan.ID, commit), d.Release())
}
