// Package controller publishes a source tree, once or whenever it changes. It decides what to
// do with each snapshot: it leaves an invalid one, holds one that Envoy has refused before,
// and publishes any other. It also retries held snapshots on request, recovers the change of
// a killed process, and trims what nothing uses any more. It knows no flags and prints
// nothing.
//
//	c := controller.New(controller.Options{Options: pipeline.Options{Source: check.Options{Path: "config"}, Out: "out"}})
//	checked, err := c.Check(ctx)
//	err = c.Open()
//	defer c.Close()
//	err = c.Prepare(ctx)
//	plan, err := c.Plan(ctx, checked)
//	outcome, err := c.Publish(ctx, checked, plan)
//	next, err := c.Trim(ctx)
//
// Watch does this in a loop.
package controller

import (
	"context"
	"errors"
	"time"

	"xdspub/check"
	"xdspub/event"
	"xdspub/pipeline"
	"xdspub/planner"
	"xdspub/publish"
)

// Options of a Controller: those of the stages, and its own.
type Options struct {
	pipeline.Options
	// Group is the name or number of the group that may read secret files; empty for the
	// group of the output directory.
	Group string
	// WarningsAsErrors makes a source tree with warnings invalid.
	WarningsAsErrors bool
}

// Controller publishes one source tree into one output directory. Not for concurrent use.
type Controller struct {
	options  Options
	log      *event.Log
	pipeline *pipeline.Pipeline
	// given is the output directory of the Options of New. A link on its path may change:
	// options.Out is where it led when dir was opened.
	given string
	dir   *publish.Dir // nil while it is not open
	retry bool         // the next Prepare retries what is held
}

// New returns a Controller. It changes nothing on disk.
func New(o Options) *Controller {
	return &Controller{options: o, log: o.Log, pipeline: pipeline.New(o.Options), given: o.Out}
}

// Configure replaces the options, but for Out and Clock.
func (c *Controller) Configure(o Options) {
	o.Out, o.Clock = c.options.Out, c.options.Clock
	c.options, c.pipeline = o, pipeline.New(o.Options)
	if c.dir != nil {
		c.pipeline.Opened(c.dir)
	}
}

// Trust makes the Controller believe, until Trust(false), that nobody else changes the open
// output directory. It then does not read again what it knows.
func (c *Controller) Trust(trust bool) { c.pipeline.Trust(trust) }

// Check calls Pipeline.Check.
func (c *Controller) Check(ctx context.Context) (*check.Result, error) {
	return c.pipeline.Check(ctx)
}

// Plan plans the publish of a checked source tree, and adds findings to it. It changes nothing
// on disk, and the output directory need not be open. The plan is nil where the findings
// make the source tree invalid. A *published.UsageError means that the output directory does
// not allow the options.
func (c *Controller) Plan(ctx context.Context, checked *check.Result) (*planner.Plan, error) {
	if checked.Invalid(c.options.WarningsAsErrors) {
		return nil, nil
	}
	plan, findings, err := c.pipeline.Plan(ctx, checked.Snapshot, time.Now())
	checked.Add(findings)
	if err != nil || checked.Invalid(c.options.WarningsAsErrors) {
		return nil, err
	}
	return plan, nil
}

// Open locks the output directory, and makes it where there is none. From then on the
// Controller uses the directory that the path leads to now. A *publish.LockedError means
// that another process publishes there.
func (c *Controller) Open() error {
	if checked := check.Overlap(c.options.Source.Path, c.given); checked != nil {
		return errors.New(checked.Diagnostics[0].Message)
	}
	dir, err := publish.Open(c.given, publish.Options{Group: c.options.Group, Log: c.options.Log})
	if err != nil {
		return err
	}
	c.dir, c.options.Out = dir, dir.Path()
	c.pipeline.Opened(dir)
	return nil
}

// IsOpen reports whether the output directory is open, be it lost or not.
func (c *Controller) IsOpen() bool { return c.dir != nil }

// Lost reports whether the open output directory was removed or replaced.
func (c *Controller) Lost() bool { return c.dir != nil && c.dir.Lost() }

// Close unlocks the output directory, if it is open.
func (c *Controller) Close() {
	if c.dir != nil {
		c.dir.Close()
		c.dir = nil
	}
}

// RetryHeld makes the next Prepare release the held snapshots.
func (c *Controller) RetryHeld() { c.retry = true }

// Prepare makes the open output directory ready for Plan: it completes the rollback of a
// process before this one, corrects the times on record, and releases the held snapshots
// after RetryHeld.
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

// Publish carries out the plan for a checked source tree; a nil plan is that of an invalid
// one. An error means that it stopped: each published file is whole, and the next plan
// starts from there. With the Verdict RefusedByEnvoy it means that the rollback is not
// complete. It is publish.ErrLost where the output directory was removed or replaced: then
// all files have to be published again.
func (c *Controller) Publish(ctx context.Context, checked *check.Result, plan *planner.Plan) (Outcome, error) {
	switch {
	case plan == nil:
		return outcomeOf(Invalid, checked, nil, pipeline.Result{}), nil
	case plan.Held != nil:
		return outcomeOf(Held, checked, plan, pipeline.Result{}), nil
	}
	result, err := c.pipeline.Publish(ctx, c.dir, plan)
	if err == nil && c.dir.Lost() {
		err = publish.ErrLost // the files are not at the path that Envoy reads
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

// Settled reports whether the open output directory is as the last Plan and Publish left it, and
// nothing in it is due. The same snapshot would then give a plan that moves nothing.
func (c *Controller) Settled() bool { return c.pipeline.Settled(c.dir, time.Now()) }

// Trim removes what nothing can use any more. next is when to call it again; zero where
// nothing waits.
func (c *Controller) Trim(ctx context.Context) (trimmed publish.Result, next time.Time, err error) {
	return c.pipeline.Trim(ctx, c.dir, time.Now())
}

// Out returns the id of the snapshot on record in the output directory; empty where there is
// none.
func (c *Controller) Out() string {
	if c.dir == nil {
		return ""
	}
	m, err := c.dir.Reader().Manifest()
	if err != nil {
		return "" // Prepare or Plan says why
	}
	return m.Snapshot
}
