// Package pipeline runs the stages from a checked source tree to one output directory: plan,
// publish, confirm, trim. Its caller checks the tree (check.Tree), decides when to run which stage, and handles
// flags, events and signals.
package pipeline

import (
	"context"
	"time"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/envoy"
	"xdspub/event"
	"xdspub/render"
	"xdspub/render/confirm"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/render/published"
	"xdspub/render/trim"
	"xdspub/source/revision"
	"xdspub/xds"
)

// Options of a Pipeline.
type Options struct {
	// Source is the source tree, and how it is judged.
	Source check.Options

	// Revision returns the git commit of the source tree as it was read; nil asks git.
	Revision func(context.Context) string

	// Out is the output directory.
	Out string
	// EnvoyPath is Out as Envoy sees it; empty means Out made absolute.
	EnvoyPath string
	// Format of the published files; nil means JSON.
	Format *render.Format
	// Endpoints says where endpoint assignments are published; empty means
	// planner.EndpointsAuto.
	Endpoints planner.EndpointsMode
	// InotifyBudget is how many path subscriptions Envoy can hold that wait for events.
	InotifyBudget int
	// PollInterval is how often Envoy reads each file, where it does not wait for events (render.Target).
	PollInterval time.Duration
	// StepGap is the wait between two steps of a plan that both moved files.
	StepGap time.Duration
	// TrimDelay is how long a retired cluster stays, for connections on a draining
	// listener.
	TrimDelay time.Duration
	// Clock notices when somebody sets the clock; nil for a short run.
	Clock *trim.Clock
	// Envoys confirm each step; nil where none is asked.
	Envoys *envoy.Fleet
	// Confirm makes what confirms each step in place of Envoys, where Envoys is nil. of has
	// the ids that its refusals go on record with. nil where nothing does.
	Confirm func(of publish.Refusal) publish.Confirmer
	// Retried is called when Envoys refuse a step that they are offered again, and with nil when they no longer
	// refuse the step; nil is not called.
	Retried func(*publish.RefusedError)
	// Log gets the log lines; nil discards them.
	Log *event.Log
}

// Pipeline turns one source tree into one output directory, again and again.
// Not for concurrent use.
type Pipeline struct {
	revision  func(context.Context) string
	stepGap   time.Duration
	trimDelay time.Duration

	out     *published.Reader
	planner *planner.Planner
	envoys  *confirm.Envoys
	trimmer *trim.Trimmer
	// republish are published files that the next Publish moves once more.
	republish []string
}

// New returns a Pipeline.
func New(o Options) *Pipeline {
	if o.Revision == nil {
		o.Revision = func(ctx context.Context) string { return revision.Of(ctx, o.Source.Path) }
	}
	p := &Pipeline{
		revision: o.Revision, stepGap: o.StepGap, trimDelay: o.TrimDelay,
		out: published.New(published.Options{Dir: o.Out, EnvoyPath: o.EnvoyPath, Format: o.Format, Envoy: o.Source.Envoy, Log: o.Log}),
	}
	p.planner = planner.New(p.out, planner.Options{
		Source: o.Source.Path, Envoy: o.Source.Envoy, Disable: o.Source.Lenient(),
		Endpoints: o.Endpoints, InotifyBudget: o.InotifyBudget, PollInterval: o.PollInterval, StepGap: o.StepGap, TrimDelay: o.TrimDelay, Log: o.Log,
	})
	p.envoys = confirm.New(p.out, confirm.Options{Fleet: o.Envoys, Instead: o.Confirm, Source: o.Source.Path, Reasons: check.New(o.Source).Reasons(), Retried: o.Retried, Log: o.Log})
	p.trimmer = trim.New(p.out, p.envoys, p.planner.Renderer(), trim.Options{Delay: o.TrimDelay, StepGap: o.StepGap, Clock: o.Clock, Log: o.Log})
	return p
}

// Opened makes the Pipeline read the output directory through d: by what d knows of it, and at
// the place where d opened it, since a link on the given path may be turned later. It ends the
// trust in what was there before.
func (p *Pipeline) Opened(d *publish.Dir) { p.out.Opened(d) }

// Trust makes the Pipeline believe, until Trust(false), that the plan before was published whole
// and that nobody else has changed the output directory since (publish.Reader.Trust).
func (p *Pipeline) Trust(trust bool) { p.out.Trust(trust) }

// Plan plans the steps from what is published to an accepted Snapshot (planner.Planner.Plan).
func (p *Pipeline) Plan(ctx context.Context, s *xds.Snapshot, now time.Time) (*planner.Plan, diag.List, error) {
	return p.planner.Plan(ctx, s, now)
}

// Published returns what is in the output directory, as the Snapshot of a source tree
// (published.Reader.Snapshot).
func (p *Pipeline) Published() (*xds.Snapshot, error) { return p.out.Snapshot() }

// KeepTime moves the times on record by as much as the clock was set forward
// (trim.Trimmer.KeepTime). Call it after Recover and before Plan; Trim begins with it.
func (p *Pipeline) KeepTime(d *publish.Dir) error { return p.trimmer.KeepTime(d) }

// Trim removes what nothing can use any more. next is when to call it again; zero where nothing
// waits (trim.Trimmer.Trim).
func (p *Pipeline) Trim(ctx context.Context, d *publish.Dir, now time.Time) (result publish.Result, next time.Time, err error) {
	return p.trimmer.Trim(ctx, d, now)
}
