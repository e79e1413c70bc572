// Package planner plans the steps from the published files to a Snapshot: which files change, in
// the order that Envoy needs, and what a rollback and a trim do. It changes nothing on disk.
//
//	p := planner.New(published.New(published.Options{Dir: "out"}), planner.Options{InotifyBudget: 120})
//	plan, findings, err := p.Plan(ctx, snapshot, time.Now())
//
// A Planner keeps its last plan. Where it knows which resources have changed since then, it
// renders and compares these only.
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
	// Envoy is the version that is to take the resources; nil means the latest that is known.
	Envoy *envoyapi.Version
	// Disable holds the codes of rules that do not run.
	Disable []string
	// Endpoints says where endpoint assignments are published; empty means EndpointsAuto.
	Endpoints EndpointsMode
	// InotifyBudget is how many path subscriptions Envoy can hold that wait for events.
	InotifyBudget int
	// PollInterval is how often Envoy reads each file, where it does not wait for events (render.Target).
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
}

// New returns a Planner for an output directory.
func New(out *published.Reader, o Options) *Planner {
	o.Endpoints = cmp.Or(o.Endpoints, EndpointsAuto)
	return &Planner{options: o, out: out}
}

// Renderer returns what the Planner renders with. What else is rendered for the output directory,
// as by a trim, is rendered with it, too: the next plan then follows from that.
func (p *Planner) Renderer() *render.Renderer { return &p.renderer }

// Plan is the steps from the published files to a Snapshot. It is a value: it can be shown, and
// need not be carried out.
type Plan struct {
	// Change publishes the new resources. What they replace stays until its trim.
	Change publish.Plan
	// ID is the id of the Snapshot.
	ID string
	// Held is the refusal for which the Snapshot is held; nil where it is not. A held
	// Snapshot is published again only on request.
	Held *publish.Refusal
	// Snapshot is the one that the plan leads to.
	Snapshot *xds.Snapshot
	// Delivery is the hash of the resources as they are delivered.
	Delivery string
	// Replaces means that the published Snapshot is another one, or that there is none.
	Replaces bool
}

// change is a change that is being planned: from what is published to a Snapshot.
type change struct {
	*Planner
	s   *xds.Snapshot
	st  *published.State
	now time.Time
}

// Plan renders an accepted Snapshot, and plans the steps from the published files to it. It
// changes nothing on disk. Where a finding has severity Error there is no plan. A
// *published.UsageError means that the output directory does not allow its Options. Any other
// error is one of reading, or that of ctx.
func (p *Planner) Plan(ctx context.Context, s *xds.Snapshot, now time.Time) (*Plan, diag.List, error) {
	st, err := p.out.State()
	if err != nil {
		return nil, nil, err
	}
	c, trusted := &change{p, s, st, now}, p.out.Trusts()
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
	p.planned = planned{snapshot: s, target: r.target, silent: r.silent}
	return plan, list, nil
}

// rendered is a Snapshot as it is to be published.
type rendered struct {
	target render.Target
	files  []render.File // all, or those that differ from the published ones
	// intermediate are LDS files to publish before that of the Snapshot.
	intermediate []render.File
	id           string
	watches      []string
	// leaving are the watches of published listeners that are none of these.
	leaving  []string
	retired  []publish.Retired
	rollback *publish.Rollback
	silent   bool // there was nothing to say
}

// renderWhole renders a Snapshot of which nothing is known. Findings of severity Error mean
// that there is nothing to publish.
func (c *change) renderWhole(ctx context.Context) (*rendered, diag.List, error) {
	c.st.ForgetGone()
	layers, _, err := c.out.Layers(c.st.Files)
	if err != nil {
		return nil, nil, err
	}
	transitions, err := transition.Transitions(c.st, c.s, transition.Options{Disable: c.options.Disable})
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

// plan plans the steps from what is published to a rendered Snapshot.
func (c *change) plan(r *rendered) (*Plan, error) {
	c.out.Rendered(r.files)
	refused, err := publish.ReadRefused(c.out.Dir())
	if err != nil {
		return nil, err
	}
	plan := &Plan{ID: c.s.ID(), Held: refused.Holds(c.s.ID(), r.id), Snapshot: c.s, Delivery: r.id, Replaces: c.s.ID() != c.st.Manifest.Snapshot}
	plan.Change = publish.Plan{
		Steps: c.steps(r),
		Gap:   c.options.StepGap, Rollback: r.rollback, Manifest: c.manifest(r),
	}
	if !c.st.Has(c.out.Format().Path(xds.Cluster, "")) {
		plan.Change.Gap = 0 // no Envoy can have started from here: its bootstrap's files are missing
	}
	return plan, nil
}
