package pipeline

import (
	"context"
	"errors"
	"slices"
	"time"

	"xdspub/envoy"
	"xdspub/internal/parallel"
	"xdspub/render/confirm"
	"xdspub/render/planner"
	"xdspub/render/publish"
)

// Result is the result of a Publish.
type Result struct {
	publish.Result
	// Outcomes are the answers of the Envoys, in the order of the steps. A step without subscribed Envoys has
	// no outcome.
	Outcomes []envoy.Outcome
	// Revision is the git commit of the source tree; empty without git.
	Revision string
}

// KeepRevision records the git commit of a source tree whose snapshot is published already, and returns the commit.
func (p *Pipeline) KeepRevision(ctx context.Context, d *publish.Dir, snapshot string) (commit string, err error) {
	commit = p.revision(ctx)
	return commit, d.SetRevision(snapshot, commit)
}

// Recover completes the rollback that a killed writer began. Call Recover before Plan, because Recover may
// change the published files.
func (p *Pipeline) Recover(ctx context.Context, d *publish.Dir) error {
	c := p.envoys.Change(nil, publish.Refusal{})
	if err := c.Recovers(); err != nil {
		return err
	}
	_, err := d.Recover(ctx, publish.Plan{Gap: p.stepGap, Confirm: c.Confirmer()})
	return err
}

// Retry releases the held snapshots. The next Publish then moves again each published file that an Envoy
// doesn't run, because Envoy reads a file only after a move.
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

// Running asks each Envoy which published files it runs (confirm.Envoys.Running).
func (p *Pipeline) Running(ctx context.Context) ([]confirm.Running, error) {
	return p.envoys.Running(ctx)
}

// Settled reports whether the output directory is unchanged since the last Plan and Publish, and needs no new
// plan. Settled returns false after Retry, when a recorded path subscription has drained, when a recorded time
// is in the future because the clock was set back, and when the record can't be read.
func (p *Pipeline) Settled(d *publish.Dir, now time.Time) bool {
	if p.republish != nil || !d.AsLeft() {
		return false
	}
	m, err := p.out.Manifest()
	return err == nil && !slices.ContainsFunc(m.DrainingWatches, func(w publish.DrainingWatch) bool {
		return w.Since.After(now) || !w.Since.After(now.Add(-p.trimDelay))
	}) && !slices.ContainsFunc(m.Retired, func(g publish.Retired) bool { return g.Since.After(now) })
}

// Publish executes a plan. After an error each published file is whole, and the next plan continues from
// there. If the error is a *publish.RefusedError itself, Envoy refused the plan and the rollback is complete.
func (p *Pipeline) Publish(ctx context.Context, d *publish.Dir, plan *planner.Plan) (Result, error) {
	c := p.envoys.Change(plan.Snapshot, publish.Refusal{Snapshot: plan.ID, Delivery: plan.Delivery})
	change := plan.Change
	change.Confirm, change.Republish = c.Confirmer(), p.republish
	p.republish = nil
	var commit string
	var asking parallel.Group
	// Git may be slow, so files don't wait for it. Ask at once, because the tree may be at another commit
	// when all Envoys have answered.
	switch {
	case plan.Revision != nil:
		commit = *plan.Revision
	case !plan.Part: // the commit on record stays that of the last whole source tree
		asking.Go(func() { commit = p.revision(ctx) })
	}
	if plan.Replaces && !plan.Part {
		change.Manifest.Revision = ""
	}
	published, err := d.Publish(ctx, change)
	asking.Wait()
	result := Result{Result: published, Outcomes: c.Outcomes(), Revision: commit}
	if err != nil || plan.Part { // a refused source tree stays held
		return result, err
	}
	return result, errors.Join(d.SetRevision(plan.ID, commit), d.Release())
}
