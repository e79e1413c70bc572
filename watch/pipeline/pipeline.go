// Package pipeline runs the stages between a checked source tree and one output directory: plan, publish,
// confirm, trim. Its caller checks the tree (check.Tree), decides when to run each stage, and handles flags,
// events and signals.
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
	"xdspub/validate/transition"
	"xdspub/xds"
)

// Options configure a Pipeline.
type Options struct {
	// Source is the source tree, with the options to check it by.
	Source check.Options

	// Revision returns the git commit of the source tree at the last read; nil means revision.Of.
	Revision func(context.Context) string

	// Out is the output directory.
	Out string
	// EnvoyPath is the path of Out for Envoy; empty means the absolute path of Out.
	EnvoyPath string
	// Format is the format of the published files; nil means JSON.
	Format *render.Format
	// Endpoints says where endpoint assignments are published; empty means planner.EndpointsAuto.
	Endpoints planner.EndpointsMode
	// InotifyBudget is the number of path subscriptions with file events that Envoy can hold (planner.Options).
	InotifyBudget int
	// PollInterval is how often Envoy reads each file if Envoy polls instead of waiting for file events
	// (render.Target).
	PollInterval time.Duration
	// StepGap is the pause between two steps that both moved files.
	StepGap time.Duration
	// TrimDelay is how long a retired cluster stays, for connections on draining listeners.
	TrimDelay time.Duration
	// Clock detects changes of the system's clock; nil for a short run.
	Clock *trim.Clock
	// Envoys confirm each step; nil if no Envoy is asked.
	Envoys *envoy.Fleet
	// Confirm returns the Confirmer that each step waits for, if Envoys is nil. of has the ids that the
	// Confirmer records with a refusal. If both Envoys and Confirm are nil, no step waits.
	Confirm func(of publish.Refusal) publish.Confirmer
	// Retried is called with the refusal when Envoys refuse a step and get it again, and with nil when they no
	// longer refuse the step. Retried may be nil.
	Retried func(*publish.RefusedError)
	// Log receives the log lines; nil discards them.
	Log *event.Log
}

// Pipeline publishes one source tree into one output directory, repeatedly. Pipeline is not safe for
// concurrent use.
type Pipeline struct {
	revision  func(context.Context) string
	stepGap   time.Duration
	trimDelay time.Duration

	out     *published.Reader
	planner *planner.Planner
	envoys  *confirm.Envoys
	trimmer *trim.Trimmer
	// republish lists published files that the next Publish moves again.
	republish []string
}

// New returns a Pipeline.
func New(o Options) *Pipeline {
	if o.Source.Remote != nil {
		o.Revision = func(context.Context) string { return "" }
	} else if o.Revision == nil {
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
	p.envoys = confirm.New(p.out, confirm.Options{
		Fleet: o.Envoys, Instead: o.Confirm, Source: o.Source.Path, Reasons: check.New(o.Source).Reasons(), Retried: o.Retried, Log: o.Log,
	})
	p.trimmer = trim.New(p.out, p.envoys, p.planner.Renderer(), trim.Options{Delay: o.TrimDelay, StepGap: o.StepGap, Clock: o.Clock, Log: o.Log})
	return p
}

// Opened makes the Pipeline read the output directory through d. The Pipeline then uses the cache of d, and
// reads the folder that d has opened even if a link in the path changes. Opened ends Trust.
func (p *Pipeline) Opened(d *publish.Dir) { p.out.Opened(d) }

// Trust makes the Pipeline assume, until Trust(false), that the last plan was published whole and that no
// other process has changed the output directory since (publish.Reader.Trust).
func (p *Pipeline) Trust(trust bool) { p.out.Trust(trust) }

// Guard sets the bounds of what the next plans may remove (planner.Planner.Guard).
func (p *Pipeline) Guard(g *transition.Guard) { p.planner.Guard(g) }

// Plan plans the steps from the published files to an accepted Snapshot (planner.Planner.Plan).
func (p *Pipeline) Plan(ctx context.Context, s *xds.Snapshot, now time.Time) (*planner.Plan, diag.List, error) {
	return p.planner.Plan(ctx, s, now)
}

// PlanPart plans the steps to a Snapshot that is a part of a refused source tree (planner.Planner.PlanPart).
func (p *Pipeline) PlanPart(ctx context.Context, s *xds.Snapshot, part publish.Part, now time.Time) (*planner.Plan, diag.List, error) {
	return p.planner.PlanPart(ctx, s, part, now)
}

// Published returns the Snapshot in the output directory, in the form of a source tree
// (published.Reader.Snapshot).
func (p *Pipeline) Published() (*xds.Snapshot, error) { return p.out.Snapshot() }

// Live returns the resources of the last published Snapshot, as the files have them (published.Reader.Live).
func (p *Pipeline) Live() (*xds.Snapshot, error) { return p.out.Live() }

// Before returns the published resources as Envoy gets them, for a comparison with next (published.Reader.Before).
func (p *Pipeline) Before(next *xds.Snapshot) (*xds.Snapshot, error) { return p.out.Before(next) }

// KeepTime shifts the recorded times if the clock was set forward (trim.Trimmer.KeepTime). Call KeepTime
// after Recover and before Plan; Trim calls it itself.
func (p *Pipeline) KeepTime(d *publish.Dir) error { return p.trimmer.KeepTime(d) }

// Trim removes unused files. next is the time for the next call; zero if nothing waits (trim.Trimmer.Trim).
func (p *Pipeline) Trim(ctx context.Context, d *publish.Dir, now time.Time) (result publish.Result, next time.Time, err error) {
	return p.trimmer.Trim(ctx, d, now)
}
