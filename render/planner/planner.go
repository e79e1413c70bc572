// Package planner plans the steps from the published files to a Snapshot: the files that change, in the order
// that Envoy needs, and the files of a rollback and of a trim. Package planner changes nothing on disk.
//
//	p := planner.New(published.New(published.Options{Dir: "out"}), planner.Options{InotifyBudget: 120})
//	plan, findings, err := p.Plan(ctx, snapshot, time.Now())
//
// A Planner caches its last plan. If the changes since the last plan are known, the Planner renders and
// compares only the changed resources.
package planner

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/event"
	"xdspub/render"
	"xdspub/render/publish"
	"xdspub/render/published"
	"xdspub/validate/transition"
	"xdspub/xds"
)

// Options of a Planner.
type Options struct {
	// Source is the path of the source tree, at which findings are reported.
	Source string
	// Envoy is the release that gets the resources; nil means the latest known release.
	Envoy *envoyapi.Version
	// Disable holds the codes of rules that do not run.
	Disable []string
	// Endpoints selects the place of endpoint assignments; empty means EndpointsAuto.
	Endpoints EndpointsMode
	// InotifyBudget is the number of path subscriptions with inotify events that Envoy can hold.
	InotifyBudget int
	// PollInterval is the interval at which Envoy reads each file if Envoy does not wait for events
	// (render.Target).
	PollInterval time.Duration
	// StepGap is the wait between two steps of a plan that both moved files.
	StepGap time.Duration
	// TrimDelay is how long a retired cluster stays, for connections on a draining
	// listener.
	TrimDelay time.Duration
	// Log gets the log lines; nil discards them.
	Log *event.Log
}

// Planner plans for one output directory, again and again. Not for concurrent use.
type Planner struct {
	options  Options
	out      *published.Reader
	renderer render.Renderer
	planned  planned
	guard    *transition.Guard
}

// New returns a Planner for an output directory.
func New(out *published.Reader, o Options) *Planner {
	o.Endpoints = cmp.Or(o.Endpoints, EndpointsAuto)
	return &Planner{options: o, out: out}
}

// Renderer returns the Planner's Renderer. A trim renders with the same Renderer, so that the next plan can
// follow from the result.
func (p *Planner) Renderer() *render.Renderer { return &p.renderer }

// Guard sets the bounds of what the next plans may remove. Without a Guard, plans may remove everything.
func (p *Planner) Guard(g *transition.Guard) { p.guard = g }

// transitions are the options of the transition rules.
func (p *Planner) transitions() transition.Options {
	return transition.Options{Disable: p.options.Disable, Guard: p.guard, Source: p.options.Source}
}

// Plan is the steps from the published files to a Snapshot. A Plan is a value, which can be shown without
// being carried out.
type Plan struct {
	// Change publishes the new resources. Replaced resources stay until their trim.
	Change publish.Plan
	// ID is the id of the Snapshot. The id of a part is its Delivery, which does not depend on the origin of its
	// resources: the source tree, or the published files.
	ID string
	// Held is the refusal for which the Snapshot is held, or nil. A held Snapshot is published again only on
	// request.
	Held *publish.Refusal
	// Snapshot is the Snapshot that the plan publishes.
	Snapshot *xds.Snapshot
	// Bound has the resources of the Snapshot in the form that Envoy gets; nil if the plan is not of a Planner.
	Bound *xds.Snapshot
	// Delivery is the hash of the resources in that form.
	Delivery string
	// Revision is the git commit of the Snapshot; nil means the commit of the source tree.
	Revision *string
	// Replaces means that no Snapshot is published, or another Snapshot.
	Replaces bool
	// Part means that the Snapshot is a part of a refused source tree.
	Part bool
	// Watches is the number of inotify instances that Envoy needs after the change, with those of draining
	// listeners. Options.InotifyBudget is their limit.
	Watches int
}

// change is the planned change from the published state to a Snapshot.
type change struct {
	*Planner
	s    *xds.Snapshot
	st   *published.State
	part *publish.Part // nil if the Snapshot is a whole source tree
	now  time.Time
}

// Plan renders an accepted Snapshot, and plans the steps from the published files to the Snapshot. Plan
// changes nothing on disk. If a finding has severity Error, the plan is nil. A *published.UsageError means
// that the output directory does not allow its Options. Any other error comes from reading, or is ctx's.
func (p *Planner) Plan(ctx context.Context, s *xds.Snapshot, now time.Time) (*Plan, diag.List, error) {
	return p.plan(ctx, s, nil, now)
}

// PlanPart is Plan for a Snapshot that is a part of a refused source tree.
func (p *Planner) PlanPart(ctx context.Context, s *xds.Snapshot, part publish.Part, now time.Time) (*Plan, diag.List, error) {
	return p.plan(ctx, s, &part, now)
}

func (p *Planner) plan(ctx context.Context, s *xds.Snapshot, part *publish.Part, now time.Time) (*Plan, diag.List, error) {
	st, err := p.out.State()
	if err != nil {
		return nil, nil, err
	}
	c, trusted := &change{p, s, st, part, now}, p.out.Trusts()
	if r, ok := c.renderEdit(ctx); ok && ctx.Err() == nil {
		plan, err := c.plan(r)
		return plan, nil, err
	}
	if trusted && !p.out.Trusts() {
		if c.st, err = p.out.State(); err != nil {
			return nil, nil, err
		}
	}
	r, list, err := c.renderWhole(ctx)
	if err != nil || list.HasErrors() {
		return nil, list, err
	}
	plan, err := c.plan(r)
	if err != nil {
		return nil, nil, err
	}
	p.out.Foresee(r.files)
	p.planned = planned{snapshot: s, id: plan.ID, target: r.target, silent: r.silent}
	return plan, list, nil
}

// rendered is a Snapshot in the form of files.
type rendered struct {
	target render.Target
	files  []render.File // all files, or the files that differ from the published files
	// intermediate are LDS files to publish before the Snapshot's LDS file.
	intermediate []render.File
	id           string
	watches      []string
	// leaving are the watches of published listeners that watches lacks.
	leaving  []string
	retired  []publish.Retired
	rollback *publish.Rollback
	silent   bool // no findings
}

// renderWhole renders a Snapshot without knowledge of an earlier plan. If a finding has severity Error,
// nothing may be published.
func (c *change) renderWhole(ctx context.Context) (*rendered, diag.List, error) {
	c.st.ForgetGone()
	layers, _, err := c.out.Layers(c.st.Files)
	if err != nil {
		return nil, nil, err
	}
	transitions, err := transition.Transitions(c.st, c.s, c.transitions())
	if err != nil || transitions.HasErrors() {
		return nil, transitions, err
	}
	r := &rendered{target: render.Target{EnvoyPath: c.out.EnvoyPath(), Format: c.out.Format(), PollInterval: c.options.PollInterval, EmptyLayers: layers}}
	if r.target.Retired = c.retiredClusters(ctx); ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	out, list := c.renderWithin(ctx, &r.target)
	r.silent = len(list) == 0
	list = append(transitions, list...)
	if ctx.Err() != nil || list.HasErrors() {
		return nil, list, ctx.Err()
	}
	r.files, r.id, r.watches, r.retired = out.Files, out.ID, out.Watches, c.retired(r.target.Retired, out)
	r.leaving = without(slices.Collect(maps.Keys(c.st.Watches(xds.Listener))), r.watches)
	intermediate, findings := c.intermediateLDS(ctx, r.target)
	if r.intermediate = intermediate; findings.HasErrors() {
		return nil, append(list, findings...), nil
	}
	r.rollback, err = c.rollback(r.target.Retired, c.s.Of(xds.Cluster))
	return r, list, cmp.Or(err, ctx.Err())
}

// id returns the id of the Snapshot on record. delivery is the hash of its rendered resources.
func (c *change) id(delivery string) string {
	if c.part != nil {
		return delivery
	}
	return c.s.ID()
}

// plan plans the steps from what is published to a rendered Snapshot.
func (c *change) plan(r *rendered) (*Plan, error) {
	c.out.Rendered(r.files)
	refused, err := publish.ReadRefused(c.out.Dir())
	if err != nil {
		return nil, err
	}
	id := c.id(r.id)
	plan := &Plan{
		ID: id, Held: refused.Holds(id, r.id), Snapshot: c.s, Bound: c.renderer.Bound(), Delivery: r.id,
		Replaces: id != c.st.Manifest.Snapshot, Part: c.part != nil,
	}
	plan.Change = publish.Plan{
		Steps: c.steps(r),
		Gap:   c.options.StepGap, Rollback: r.rollback, Manifest: c.manifest(r),
	}
	plan.Watches = len(r.watches) + len(plan.Change.Manifest.DrainingWatches)
	if !c.st.Has(c.out.Format().Path(xds.Cluster, "")) {
		plan.Change.Gap = 0 // no Envoy can have started: the files of its bootstrap are missing
	}
	return plan, nil
}
