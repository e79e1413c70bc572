package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/render/published"
	"xdspub/watch/part"
	"xdspub/xds"
	"xdspub/xds/bind"
)

// live is the published snapshot, from which a part of a refused source tree is made.
type live struct {
	// snapshot is what this process has published last, in the form of toPublish; nil before the first publish.
	snapshot *xds.Snapshot
	part     *publish.Part // nil if the snapshot is a whole source tree
	of       *check.Result // the last whole source tree that this process has published; nil for none
	tree     *check.Tree   // judges parts; nil before the first part since the last whole source tree
	held     held
}

// held is the last held source tree, which Envoys or clients rejected.
type held struct {
	snapshot *xds.Snapshot // nil for none
	refusal  *publish.Refusal
}

// hold records that a source tree is held.
func (c *Controller) hold(plan *planner.Plan, checked *check.Result, r *publish.Refusal) {
	if !plan.Part {
		c.live.held = held{c.toPublish(checked), r}
	}
}

// heldMeanwhile returns the refusal of the last held source tree if checked differs from that source tree only by
// changes that Options.WhileRefused admits, and that the refusal is not about. Otherwise Envoys would reject each of
// these changes before a part has the change.
func (c *Controller) heldMeanwhile(checked *check.Result) *publish.Refusal {
	was, types := c.live.held, part.TypesOf(c.options.WhileRefused)
	if was.snapshot == nil || len(types) == 0 || len(was.refusal.Findings) == 0 {
		return nil
	}
	read := c.toPublish(checked)
	d := read.Diff(was.snapshot)
	changed := slices.Concat(d.Added, d.Changed, d.Removed)
	if slices.ContainsFunc(changed, func(r *xds.Resource) bool { return !slices.Contains(types, r.Type) }) ||
		slices.ContainsFunc(was.refusal.Findings, func(f diag.Diagnostic) bool { return f.Resource.Type == "" }) ||
		part.FaultsOf(nil, diag.Error).Blame(was.refusal.Findings, diag.Error, read, xds.Change{Added: changed}) {
		return nil
	}
	return was.refusal
}

// Part is what Controller.PublishPart did.
type Part struct {
	// Waits is why no part was published; empty if all changes that may go on are published.
	Waits string
	// Outcome is the outcome of the publish, and Snapshot the published snapshot. Outcome is zero if what may go on was
	// published before.
	Outcome  Outcome
	Snapshot *xds.Snapshot
	// Bound is the published snapshot as Envoy gets it; nil without files.
	Bound *xds.Snapshot
}

// mostRounds is how often PublishPart leaves out more resources because of errors of the part.
const mostRounds = 10

// PublishPart publishes the changes of a refused source tree that Options.WhileRefused admits: on top of the published
// snapshot, the faultless changes of resources that are live. The part is judged as a source tree is, and published by
// the same plan. refused is the outcome of Publish for the source tree, since is when the refusal began.
func (c *Controller) PublishPart(ctx context.Context, checked *check.Result, refused Outcome, since time.Time) (Part, error) {
	if waits := c.Waits(); waits != "" {
		return Part{Waits: waits}, nil
	}
	if checked.ClientsUnknown {
		return Part{Waits: "the clients of some resources are unknown"}, nil
	}
	read, faults := c.toPublish(checked), part.FaultsOf(refused.Findings, c.refuses())
	if read.Len() == 0 {
		return Part{Waits: "no resource of the source tree was read"}, nil
	}
	from, err := c.liveFor(ctx, read, faults)
	if notLive, ok := errors.AsType[*published.NotLiveError](err); ok {
		return Part{Waits: notLive.Reason}, nil
	}
	if err != nil {
		return Part{}, err
	}
	for range mostRounds {
		change := part.Admit(from, read, part.TypesOf(c.options.WhileRefused), faults)
		if change.Empty() {
			return Part{}, nil
		}
		mixed, err := c.judgePart(ctx, from.Apply(change), checked)
		if err != nil {
			return Part{}, err
		}
		guard := c.guard(mixed)
		plan, err := c.plan(ctx, mixed, planning{of: &publish.Part{Since: since}, guard: guard})
		switch {
		case err != nil || ctx.Err() != nil:
			return Part{}, err
		case plan != nil:
			return c.publishPart(ctx, mixed, plan)
		case !faults.BlameRemovals(guard, change) && !faults.Blame(mixed.Diagnostics, c.refuses(), c.toPublish(mixed), change):
			return Part{Waits: "together with what is published, it has errors: " + firstError(mixed.Diagnostics, c.refuses())}, nil
		}
	}
	return Part{Waits: fmt.Sprintf("after %d attempts, the part still had errors", mostRounds)}, nil
}

// refuses returns the least severity that makes a source tree invalid.
func (c *Controller) refuses() diag.Severity {
	if c.options.WarningsAsErrors {
		return diag.Warning
	}
	return diag.Error
}

// liveFor returns the published snapshot in the form of toPublish: that of this process, or else that of the output
// directory. A faultless resource of read takes the place of an equal published resource.
func (c *Controller) liveFor(ctx context.Context, read *xds.Snapshot, faults *part.Faults) (*xds.Snapshot, error) {
	switch {
	case c.live.snapshot != nil:
		return c.live.snapshot, nil
	case !c.writes():
		return nil, &published.NotLiveError{Reason: "nothing is published"}
	}
	m, err := c.dir.Reader().Manifest()
	if err != nil {
		return nil, err
	}
	if c.apart || c.options.Server != nil && m.RestrictedSecrets {
		return nil, &published.NotLiveError{Reason: "the output directory has the resources of only some clients"}
	}
	s, err := c.pipeline.Live()
	if err != nil {
		return nil, err
	}
	var faultless []*xds.Resource
	for _, r := range read.All() {
		if !faults.Has(r) {
			faultless = append(faultless, r)
		}
	}
	if s = bind.Restore(ctx, s, xds.NewSnapshot(faultless)); s == nil {
		return nil, ctx.Err()
	}
	c.live.snapshot, c.live.part = s, m.Part
	return s, nil
}

// judgePart judges a part of a source tree.
func (c *Controller) judgePart(ctx context.Context, s *xds.Snapshot, of *check.Result) (*check.Result, error) {
	if c.live.tree == nil {
		c.live.tree = check.New(c.options.Source)
		c.live.tree.KeepApart(c.options.Out)
	}
	all := []*check.Result{of}
	if c.live.of != nil {
		all = append(all, c.live.of)
	}
	return c.live.tree.Judge(ctx, s, all...)
}

// publishPart publishes a judged part.
func (c *Controller) publishPart(ctx context.Context, mixed *check.Result, plan *planner.Plan) (Part, error) {
	o, err := c.Publish(ctx, mixed, plan)
	done := Part{Outcome: o}
	switch o.Verdict {
	case Published:
		done.Snapshot, done.Bound = c.accepted, plan.Bound
	case Held, RefusedByEnvoy:
		done.Waits = o.Message()
	}
	return done, err
}

// part returns the record of the published part; nil if a whole source tree, or nothing, is published.
func (c *Controller) part() *publish.Part {
	if c.live.snapshot != nil || c.dir == nil {
		return c.live.part
	}
	m, err := c.dir.Reader().Manifest()
	if err != nil {
		return nil // Prepare or Plan reports the error
	}
	return m.Part
}

// firstError returns the first finding of at least a severity.
func firstError(list diag.List, least diag.Severity) string {
	for _, d := range list {
		if d.Severity <= least {
			return d.String()
		}
	}
	return ""
}
