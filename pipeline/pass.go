package pipeline

import (
	"context"
	"time"

	"xdspub/publish"
)

// Publish carries a plan out. An error means that it stopped: what was out or
// came out is whole, and the next plan goes on from there.
func (p *Pipeline) Publish(ctx context.Context, d *publish.Dir, plan *Plan) (publish.Result, error) {
	result, err := d.Publish(ctx, plan.Change)
	if err != nil || len(plan.Trim.Steps) == 0 {
		return result, err
	}
	if len(result.Steps) > 0 && !wait(ctx, plan.Change.Gap) {
		return result, nil // the next pass trims
	}
	trimmed, err := d.Publish(ctx, plan.Trim)
	result.Steps = append(result.Steps, trimmed.Steps...)
	return result, err
}

// wait tells whether the time passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
