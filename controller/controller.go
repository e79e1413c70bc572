// Package controller brings a source tree out, once or whenever it changes. Of each
// snapshot it decides what to do: leave out what is invalid, hold what Envoy has refused
// before, publish, try again what was held, recover what a killed process had begun, and
// trim what nothing uses any more. It knows no flags and prints nothing.
//
//	c := controller.New(controller.Options{Options: pipeline.Options{Source: "config", Out: "out"}})
//	checked, err := c.Check(ctx)
//	err = c.Open()
//	defer c.Close()
//	err = c.Prepare(ctx)
//	plan, err := c.Plan(checked)
//	outcome, err := c.Publish(ctx, checked, plan)
//	next, err := c.Trim(ctx)
//
// Watch does this in a loop.
package controller

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"xdspub/pipeline"
	"xdspub/publish"
)

// Options of a Controller: those of the stages, and what the Controller decides by.
type Options struct {
	pipeline.Options
	// Group is the name or number of the group that may read secret files; empty for
	// the output directory's.
	Group string
	// WarningsAsErrors makes a source tree with warnings invalid.
	WarningsAsErrors bool
}

// Controller brings one source tree out into one output directory. Not for concurrent use.
type Controller struct {
	options  Options
	log      *slog.Logger
	pipeline *pipeline.Pipeline
	// given is the output directory as it was asked for. A link on its path may come to
	// lead elsewhere: options.Out is where it led when dir was opened.
	given string
	dir   *publish.Dir // nil while it is not open
	retry bool         // with the next Prepare
}

// New makes a Controller. It touches nothing on disk.
func New(o Options) *Controller {
	return &Controller{options: o, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), pipeline: pipeline.New(o.Options), given: o.Out}
}

// Configure replaces the options, but for Out and Clock.
func (c *Controller) Configure(o Options) {
	o.Out, o.Clock = c.options.Out, c.options.Clock
	c.options, c.pipeline = o, pipeline.New(o.Options)
}

// Options are those that the Controller has now; Out is where the open output directory is.
func (c *Controller) Options() Options { return c.options }

// Overlap is Pipeline.Overlap.
func (c *Controller) Overlap() *pipeline.Checked { return c.pipeline.Overlap() }

// Check is Pipeline.Check.
func (c *Controller) Check(ctx context.Context) (*pipeline.Checked, error) {
	return c.pipeline.Check(ctx)
}

// Plan plans how to publish what was checked, and adds findings to it. It changes nothing
// on disk, and the output directory need not be open. The plan is nil where the findings
// make the source tree invalid. A *pipeline.UsageError means that the output directory does
// not allow the options.
func (c *Controller) Plan(checked *pipeline.Checked) (*pipeline.Plan, error) {
	if checked.Invalid(c.options.WarningsAsErrors) {
		return nil, nil
	}
	plan, findings, err := c.pipeline.Plan(checked.Snapshot, time.Now())
	checked.Add(findings)
	if err != nil || checked.Invalid(c.options.WarningsAsErrors) {
		return nil, err
	}
	return plan, nil
}

// Open locks the output directory, and makes it where there is none. From then on all is
// read and written where it leads now. A *publish.LockedError means that another process
// publishes there.
func (c *Controller) Open() error {
	at := c.options.Options
	at.Out = c.given
	if checked := pipeline.New(at).Overlap(); checked != nil {
		return errors.New(checked.Diagnostics[0].Message)
	}
	dir, err := publish.Open(c.given, publish.Options{Group: c.options.Group, Log: c.options.Log})
	if err != nil {
		return err
	}
	c.dir, c.options.Out = dir, dir.Path()
	c.pipeline.SetOut(dir.Path())
	return nil
}

// IsOpen tells whether the output directory is open, be it lost or not.
func (c *Controller) IsOpen() bool { return c.dir != nil }

// Lost tells whether the open output directory was removed or replaced.
func (c *Controller) Lost() bool { return c.dir != nil && c.dir.Lost() }

// Close unlocks the output directory, if it is open.
func (c *Controller) Close() {
	if c.dir != nil {
		c.dir.Close()
		c.dir = nil
	}
}

// RetryHeld has the next Prepare let what Envoy refused be tried again.
func (c *Controller) RetryHeld() { c.retry = true }

// Prepare brings the open output directory into a state from which a plan can be made: it
// recovers what a process before this one had begun to put back, keeps the times on record
// right, and lets what is held be tried again if that was asked for.
func (c *Controller) Prepare(ctx context.Context) error {
	if err := c.pipeline.Recover(ctx, c.dir); err != nil {
		return err
	}
	if err := c.pipeline.KeepTime(c.dir); err != nil {
		return err
	}
	if c.retry {
		if err := c.pipeline.Retry(ctx, c.dir); err != nil {
			return err
		}
		c.retry = false
	}
	return nil
}

// Publish carries the plan for what was checked out: nil is one for an invalid source
// tree. An error means that it stopped: what is out is whole, and the next plan goes on
// from there. With the Verdict Rejected it means that what had gone out could not be put
// back. It is publish.ErrLost where the output directory was removed or replaced: all of
// it has to be published anew.
func (c *Controller) Publish(ctx context.Context, checked *pipeline.Checked, plan *pipeline.Plan) (Outcome, error) {
	switch {
	case plan == nil:
		return outcomeOf(Invalid, checked, nil, pipeline.Result{}), nil
	case plan.Held != nil:
		return outcomeOf(Held, checked, plan, pipeline.Result{}), nil
	}
	result, err := c.pipeline.Publish(ctx, c.dir, plan)
	if err == nil && c.dir.Lost() {
		err = publish.ErrLost // what is out is not where anybody looks
	}
	if errors.Is(err, publish.ErrLost) {
		return Outcome{}, err
	}
	if refused, ok := errors.AsType[*publish.RefusedError](err); ok {
		o := outcomeOf(RefusedByEnvoy, checked, plan, result)
		o.Refusal, o.Findings = &refused.Refusal, refused.Findings()
		if o.Restored = error(refused) == err; o.Restored {
			err = nil
		}
		return o, err
	}
	if err != nil {
		return Outcome{}, err
	}
	return outcomeOf(Published, checked, plan, result), nil
}

// Trim removes what nothing can use any more. next is when to trim again; zero where
// nothing waits.
func (c *Controller) Trim(ctx context.Context) (trimmed publish.Result, next time.Time, err error) {
	return c.pipeline.Trim(ctx, c.dir, time.Now())
}

// Out is the id of the snapshot on record in the output directory; empty where none is.
func (c *Controller) Out() string {
	if c.dir == nil {
		return ""
	}
	m, err := publish.ReadManifest(c.options.Out)
	if err != nil {
		return "" // Prepare or Plan says why
	}
	return m.Snapshot
}
