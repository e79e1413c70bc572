package watch

import (
	"xdspub/diff"
	"xdspub/render/planner"
)

// Difference compares the published files with the files of a plan, as Envoy gets both.
func (c *Controller) Difference(plan *planner.Plan) (*diff.Diff, error) {
	was, err := c.pipeline.Before(plan.Bound)
	if err != nil {
		return nil, err
	}
	return diff.Compare(was, plan.Bound), nil
}
