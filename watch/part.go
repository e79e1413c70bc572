package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/render/published"
	"xdspub/source/owners"
	"xdspub/source/settingsfile"
	"xdspub/watch/part"
	"xdspub/xds"
	"xdspub/xds/bind"
)

// live is the published snapshot, from which a part of a refused source tree is made.
type live struct {
	// snapshot is what this process has published last, in the form of toPublish; nil before the first publish.
	snapshot *xds.Snapshot
	part     *publish.Part // nil if the snapshot is a whole source tree
	of       *check.Result // the last source tree that this process has published; nil for none
	tree     *check.Tree   // judges parts; nil before the first part since the last whole source tree
	held     held
	// owners are the patterns by which the resources of snapshot have their Owner; nil if the owners are unknown.
	owners []string
	// unknown is why the owner of a resource is unknown; empty if all owners are known.
	unknown string
	// was has the source trees in which the folders of held owners were last valid.
	was map[string]*check.Result
	// holds are the owners that the last part has held; nil before the first part.
	holds []owners.Held
	// rejected are the source trees in which Envoys or clients rejected the folder of an owner.
	rejected map[string]*xds.Snapshot
	// interrupted is the part that a killed process has published in part; nil for none. The snapshot has resources of
	// two source trees then, except for the folders of interrupted.Held.
	interrupted *publish.Part
}

// published records that a snapshot is published. p is nil for a whole source tree.
func (l *live) published(s *xds.Snapshot, owners []string, p *publish.Part) {
	l.snapshot, l.owners, l.part, l.interrupted = s, owners, p, nil
}

// publishedWhole records that a whole source tree is published.
func (l *live) publishedWhole(of *check.Result) {
	l.of, l.tree, l.held, l.was, l.holds, l.rejected = of, nil, held{}, nil, nil, nil
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
// changes that a part may have, and that the refusal is not about. Otherwise Envoys would reject each of these changes
// before a part has the change.
func (c *Controller) heldMeanwhile(checked *check.Result) *publish.Refusal {
	was, types := c.live.held, part.TypesOf(c.options.WhileRefused)
	if was.snapshot == nil || !c.publishesParts() || len(was.refusal.Findings) == 0 {
		return nil
	}
	guilty := make(map[string]bool)
	for _, f := range was.refusal.Findings {
		for _, owner := range c.treeOf(was.snapshot, was.snapshot).Involved(f) {
			guilty[owner] = true
		}
	}
	goesOn := func(r *xds.Resource) bool {
		return slices.Contains(types, r.Type) || len(guilty) > 0 && r.Owner != "" && !guilty[r.Owner]
	}
	read := c.toPublish(checked)
	d := read.Diff(was.snapshot)
	changed := slices.Concat(d.Added, d.Changed, d.Removed)
	if slices.ContainsFunc(changed, func(r *xds.Resource) bool { return !goesOn(r) }) ||
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
	// Held are the owners whose folders keep their last valid resources.
	Held []owners.Held
	// OwnersWait is why the folders of all owners wait; empty without owners.
	OwnersWait string
	// TypesWait means that changes of Options.WhileRefused wait, because they have errors together with Held.
	TypesWait bool
	// Outcome is the outcome of the publish. Outcome is zero if what may go on was published before.
	Outcome Outcome
	// Snapshot is the published snapshot, and Bound the same as Envoy gets it; nil without files.
	Snapshot, Bound *xds.Snapshot
}

// publishesParts reports whether a part of a refused source tree may be published.
func (c *Controller) publishesParts() bool {
	return len(c.options.WhileRefused)+len(c.options.Source.Owners) > 0 && !c.options.AllOrNothing
}

// treeOf returns two snapshots with the folders of owners.
func (c *Controller) treeOf(live, read *xds.Snapshot) *part.Tree {
	return &part.Tree{Live: live, Read: read, Folders: owners.New(c.options.Source.Path, c.options.Source.Owners)}
}

// mostRounds is how often PublishPart leaves out more resources because of errors of the part.
const mostRounds = 10

// PublishPart publishes a part of a refused source tree. With owners, folders with errors keep their last valid
// resources, and all other folders go on. Then Options.WhileRefused admits faultless changes of live resources. The
// part is judged as a source tree is, and published by the same plan. refused is the outcome of Publish for the source
// tree, since is when the refusal began.
func (c *Controller) PublishPart(ctx context.Context, checked *check.Result, refused Outcome, since time.Time) (Part, error) {
	if waits := c.Waits(); waits != "" {
		return Part{Waits: waits}, nil
	}
	unknown, ok := c.ownersIn(checked.ClientsUnknownIn)
	if !ok {
		return Part{Waits: "the clients of some resources are unknown"}, nil
	}
	read, faults := c.toPublish(checked), part.FaultsOf(refused.Findings, c.refuses())
	faults.AddOf(read, unknown)
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
	t := c.treeOf(from, read)
	t.Faults = atLeast(refused.Findings, c.refuses())
	t.Rejected = append(c.live.rejects(t.Read), unknown...)
	s, err := c.settle(ctx, t, checked, since)
	if err != nil || ctx.Err() != nil {
		return Part{}, err
	}
	if s.Snapshot == nil && c.live.interrupted != nil {
		return Part{Waits: cmp.Or(s.Waits, interrupted)}, nil
	}
	if refused.Verdict == Waits {
		s.Waits = "" // the outcome says why the source tree waits
	}
	p := &partly{Controller: c, tree: t, checked: checked, faults: faults, settled: s, of: c.live.partOf(s.Held, since), done: Part{OwnersWait: s.Waits}}
	if s.Snapshot != nil {
		t.Live, c.live.holds, p.done.Held = s.Snapshot, p.of.Held, p.of.Held
	} else if c.live.part != nil {
		p.of.Held = c.live.part.Held // as it is published
	}
	return p.publish(ctx)
}

// ownersIn returns the owners of folders. ok is false if a folder has no owner.
func (c *Controller) ownersIn(folders []string) (list []string, ok bool) {
	of := owners.New(c.options.Source.Path, c.options.Source.Owners)
	for _, dir := range folders {
		owner := of.Of(filepath.Join(dir, settingsfile.FileName))
		if owner == "" {
			return nil, false
		}
		list = append(list, owner)
	}
	return list, true
}

// interrupted is why nothing can be published after the change of a part was interrupted.
const interrupted = "a change was interrupted, so that the published files are those of two source trees"

// partly is a PublishPart of a settled source tree.
type partly struct {
	*Controller
	tree    *part.Tree // Live has the settled Snapshot
	checked *check.Result
	faults  *part.Faults
	settled settledTree
	of      *publish.Part
	done    Part
}

// publish publishes the settled Snapshot with the changes that Options.WhileRefused admits.
func (p *partly) publish(ctx context.Context) (Part, error) {
	for range mostRounds {
		change := part.Admit(p.tree.Live, p.tree.Read, part.TypesOf(p.options.WhileRefused), p.faults)
		if change.Empty() {
			return p.execute(ctx, p.settled.mixed, p.settled.plan)
		}
		mixed, err := p.judgePart(ctx, p.tree.Live.Apply(change), p.checked)
		if err != nil {
			return Part{}, err
		}
		if p.settled.plan != nil {
			p.Trust(false) // that plan was not published
		}
		guard := p.guard(mixed)
		plan, err := p.plan(ctx, mixed, planning{of: p.of, guard: guard})
		switch {
		case err != nil || ctx.Err() != nil:
			return Part{}, err
		case plan != nil && (plan.Held == nil || p.settled.Snapshot == nil):
			return p.execute(ctx, mixed, plan)
		case plan != nil || !p.faults.BlameRemovals(guard, change) && !p.faults.Blame(mixed.Diagnostics, p.refuses(), p.toPublish(mixed), change):
			return p.without(ctx, "together with what is published, it has errors: "+firstError(mixed.Diagnostics, p.refuses()))
		}
	}
	return p.without(ctx, fmt.Sprintf("after %d attempts, the part still had errors", mostRounds))
}

// without publishes the settled Snapshot alone.
func (p *partly) without(ctx context.Context, waits string) (Part, error) {
	if p.settled.Snapshot == nil {
		return Part{Waits: waits, OwnersWait: p.done.OwnersWait}, nil
	}
	p.done.TypesWait = true
	return p.execute(ctx, p.settled.mixed, p.settled.plan)
}

// execute publishes a judged part; nil if the part is published already.
func (p *partly) execute(ctx context.Context, mixed *check.Result, plan *planner.Plan) (Part, error) {
	if mixed == nil {
		return p.done, nil
	}
	if p.settled.mixed != nil && plan != nil && plan.Held == nil {
		p.overrides() // a freeze holds the folders of owners, but not changes that Options.WhileRefused admits
	}
	o, err := p.Publish(ctx, mixed, plan)
	p.done.Outcome = o
	switch o.Verdict {
	case Published:
		p.done.Bound = plan.Bound
		if p.done.Snapshot = p.accepted; p.settled.Snapshot != nil {
			p.live.publishedPart(p.checked, p.of.Held)
		}
	case Held, RefusedByEnvoy:
		p.done.Waits = o.Message()
		p.live.reject(p.tree, o.Findings)
	}
	return p.done, err
}

// refuses returns the least severity that makes a source tree invalid.
func (c *Controller) refuses() diag.Severity {
	if c.options.WarningsAsErrors {
		return diag.Warning
	}
	return diag.Error
}

// liveFor returns the published snapshot with the owners of its resources. If an owner is unknown, liveFor sets
// live.unknown.
func (c *Controller) liveFor(ctx context.Context, read *xds.Snapshot, faults *part.Faults) (*xds.Snapshot, error) {
	s, err := c.publishedFor(ctx, read, faults)
	if err == nil && len(c.options.Source.Owners) > 0 {
		s, c.live.unknown = c.adopt(s, read)
	}
	return s, err
}

// publishedFor returns the published snapshot in the form of toPublish: that of this process, or else that of the
// output directory. A faultless resource of read takes the place of an equal published resource.
func (c *Controller) publishedFor(ctx context.Context, read *xds.Snapshot, faults *part.Faults) (*xds.Snapshot, error) {
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
	intent, err := publish.ReadIntent(c.dir.Path())
	if err != nil {
		return nil, err
	}
	if intent != nil && len(m.Part.Held) > 0 {
		c.live.interrupted = m.Part
	}
	c.live.snapshot, c.live.owners = c.owned(s, m)
	c.live.part = m.Part
	return c.live.snapshot, nil
}

// judgePart judges a part of a source tree.
func (c *Controller) judgePart(ctx context.Context, s *xds.Snapshot, of *check.Result) (*check.Result, error) {
	if c.live.tree == nil {
		c.live.tree = check.New(c.options.Source)
		c.live.tree.KeepApart(c.options.Out)
	}
	mixed, err := c.live.tree.Judge(ctx, s, append([]*check.Result{of}, c.live.trees()...)...)
	if err == nil && slices.Equal(c.live.owners, c.options.Source.Owners) {
		mixed.Owners = c.live.owners
	}
	return mixed, err
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
