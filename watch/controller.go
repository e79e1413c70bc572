// Package watch publishes a source tree, once or whenever it changes. It decides what to
// do with each snapshot: it leaves an invalid one, holds one that Envoy has refused before,
// and publishes any other. It also retries held snapshots on request, recovers the change of
// a killed process, and trims what nothing uses any more. It knows no flags and prints
// nothing.
//
//	o := watch.Options{Options: pipeline.Options{Source: check.Options{Path: "config"}, Out: "out"}}
//	checked, err := watch.Tree([]watch.Options{o}).Check(ctx)
//	c := watch.New(o)
//	err = c.Open()
//	defer c.Close()
//	err = c.Prepare(ctx)
//	plan, err := c.Plan(ctx, checked)
//	outcome, err := c.Publish(ctx, checked, plan)
//	next, err := c.Trim(ctx)
//
// Watch does this in a loop.
package watch

import (
	"context"
	"errors"
	"time"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/event"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/watch/control"
	"xdspub/watch/pipeline"
	"xdspub/xds"
	"xdspub/xds/clients"
	"xdspub/xds/variants"
)

// Options of a Controller: those of the stages, and its own. With a Server, Out may be empty:
// then nothing is written.
type Options struct {
	pipeline.Options
	// Server serves what is published over the network; nil where nothing is served.
	Server Server
	// ByNode means that the Server's clients have dynamic parameters by their nodes.
	ByNode bool
	// Group is the name or number of the group that may read secret files; empty for the
	// group of the output directory.
	Group string
	// WarningsAsErrors makes a source tree with warnings invalid.
	WarningsAsErrors bool
	// Target is the name of the target that this is for; empty where the source tree has none.
	Target string
	// AllOrNothing means that no target is published while there is an Objection of one.
	AllOrNothing bool
}

// Server serves snapshots to clients of the xDS transport protocol.
type Server interface {
	// Publish makes a snapshot what is served; the same one again changes nothing. A
	// *clients.RefusedError means that clients rejected it, any other error that the snapshot
	// before is served.
	Publish(ctx context.Context, s *xds.Snapshot) error
	// Restore makes a snapshot what is served that clients may have from a process before this one.
	// It waits for no client.
	Restore(ctx context.Context, s *xds.Snapshot) error
	// Served returns what a client gets that says nothing of itself: the snapshot that was published
	// last, with what stays until its Trim. It is nil before the first Publish.
	Served() *xds.Snapshot
	// Transitions returns what clients get, with what stays until its Trim, and what they would get of a
	// snapshot: one of each kind of client that the variants of resources tell apart. It is empty before
	// the first Publish.
	Transitions(s *xds.Snapshot) []variants.Transition
	// Retry sends clients once more what they rejected.
	Retry(ctx context.Context) error
	// Clients returns who is served.
	Clients() []clients.Client
	// Tell has the Server show the state of the watch to those who ask. Nobody may change w afterwards.
	Tell(w control.Watch)
	// Trim removes what was replaced long ago, and returns how many resources. next is when to
	// call it again; zero where nothing waits.
	Trim(ctx context.Context, now time.Time) (removed int, next time.Time, err error)
}

// Controller publishes one source tree into one output directory, or to a Server, or both. Not
// for concurrent use.
type Controller struct {
	options  Options
	log      *event.Log
	pipeline *pipeline.Pipeline
	// given is the output directory of the Options of New. A link on its path may change:
	// options.Out is where it led when dir was opened.
	given string
	dir   *publish.Dir // nil while it is not open
	retry bool         // the next Prepare retries what is held
	// accepted was published last, be it by a process before this one, and served is what the Server got of that;
	// refused is why clients of the Server have rejected another one, which is held. nil for none.
	accepted, served *xds.Snapshot
	refused          *publish.Refusal
	// apart means that the tree of the last Plan has variants for clients of the Server, or that the output directory has
	// secrets for some of them only, or that nobody knows.
	apart  bool
	judged judged
}

// New returns a Controller. It changes nothing on disk.
func New(o Options) *Controller {
	return &Controller{options: o, log: o.Log, pipeline: pipeline.New(o.Options), given: o.Out}
}

// Configure replaces the options, but for Out, Server, Clock and Retried.
func (c *Controller) Configure(o Options) {
	o.Out, o.Server, o.Clock, o.Retried = c.options.Out, c.options.Server, c.options.Clock, c.options.Retried
	c.options, c.pipeline, c.judged = o, pipeline.New(o.Options), judged{}
	if c.dir != nil {
		c.pipeline.Opened(c.dir)
	}
}

// Trust makes the Controller believe, until Trust(false), that nobody else changes the open
// output directory. It then does not read again what it knows.
func (c *Controller) Trust(trust bool) { c.pipeline.Trust(trust) }

// Plan plans the publish of a checked source tree, and adds findings to it. It changes nothing
// on disk, and the output directory need not be open. The plan is nil where the findings
// make the source tree invalid. A *published.UsageError means that the output directory does
// not allow the options.
func (c *Controller) Plan(ctx context.Context, checked *check.Result) (*planner.Plan, error) {
	c.apart = c.tellsApart(checked)
	switch {
	case checked.Invalid(c.options.WarningsAsErrors):
		return nil, nil
	case c.refused != nil && c.refused.Snapshot == c.servedID(checked):
		return &planner.Plan{ID: c.planID(checked), Snapshot: checked.Snapshot, Held: c.refused}, nil
	}
	plan, findings, err := c.planned(ctx, checked)
	checked.Add(findings)
	if err != nil || checked.Invalid(c.options.WarningsAsErrors) {
		return nil, err
	}
	return plan, nil
}

// toServe returns what the Server gets of a checked source tree: all variants of its resources, unless the
// tree is for clients of one kind.
func (c *Controller) toServe(checked *check.Result) *xds.Snapshot {
	if c.options.Source.Client != nil {
		return checked.Snapshot
	}
	return checked.Variants.All()
}

// servedID identifies what the Server gets, with the constraints of variants.
func (c *Controller) servedID(checked *check.Result) string {
	if c.options.Server == nil || c.options.Source.Client != nil {
		return checked.Snapshot.ID()
	}
	return checked.Variants.ID()
}

// planID is the id of the snapshot on record: that of the files, where there are any.
func (c *Controller) planID(checked *check.Result) string {
	if c.writes() {
		return checked.Snapshot.ID()
	}
	return c.servedID(checked)
}

func (c *Controller) planned(ctx context.Context, checked *check.Result) (plan *planner.Plan, findings diag.List, err error) {
	if c.SnapshotID() == "" && c.options.Server != nil { // what runs is in no file
		if findings, err = c.transitions(c.toServe(checked)); err != nil {
			return nil, nil, err
		}
	}
	s := checked.Snapshot
	if !c.writes() {
		return &planner.Plan{ID: c.planID(checked), Snapshot: s}, findings, nil
	}
	plan, more, err := c.pipeline.Plan(ctx, s, time.Now())
	return plan, append(findings, more...), err
}

// Open locks the output directory, and makes it where there is none. From then on the
// Controller uses the directory that the path leads to now. A *publish.LockedError means
// that another process publishes there.
func (c *Controller) Open() error {
	if !c.writes() {
		return nil
	}
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

// writes reports whether there is an output directory.
func (c *Controller) writes() bool { return c.given != "" }

// IsOpen reports whether the output directory is open, be it lost or not.
func (c *Controller) IsOpen() bool { return c.dir != nil || !c.writes() }

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
	if c.writes() {
		if err := c.pipeline.Recover(ctx, c.dir); err != nil {
			return err
		}
		if err := c.pipeline.KeepTime(c.dir); err != nil {
			return err
		}
	}
	if !c.retry {
		return nil
	}
	if c.writes() {
		if err := c.pipeline.Retry(ctx, c.dir); err != nil {
			return err
		}
	}
	if c.options.Server != nil {
		if err := c.options.Server.Retry(ctx); err != nil {
			return err
		}
	}
	c.retry, c.refused = false, nil
	return nil
}

// Publish carries out the plan for a checked source tree; a nil plan is that of an invalid
// one. An error means that it stopped: each published file is whole, and the next plan
// starts from there. With the Verdict RefusedByEnvoy it means that the rollback is not
// complete. It is publish.ErrLost where the output directory was removed or replaced: then
// all files have to be published again. The Server gets what is in the output directory.
func (c *Controller) Publish(ctx context.Context, checked *check.Result, plan *planner.Plan) (Outcome, error) {
	switch {
	case plan == nil:
		return outcomeOf(Invalid, checked, nil, pipeline.Result{}), nil
	case plan.Held != nil:
		return outcomeOf(Held, checked, plan, pipeline.Result{}), nil
	}
	before := c.recorded(ctx, checked.Snapshot)
	result, err := c.write(ctx, plan)
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
	if err == nil && c.options.Server != nil {
		if err = c.serveAfter(ctx, before, c.toServe(checked)); err == nil {
			c.served = c.toServe(checked)
		}
		if refused, ok := errors.AsType[*clients.RefusedError](err); ok {
			return c.takenBack(ctx, refused, c.servedID(checked), outcomeOf(RefusedByEnvoy, checked, plan, result))
		}
	}
	if err != nil {
		return Outcome{}, err
	}
	c.accepted, c.refused = checked.Snapshot, nil
	o := outcomeOf(Published, checked, plan, result)
	o.Served = c.servedID(checked)
	return o, nil
}

// takenBack holds a snapshot, by the id of what they got of it, that clients of the Server rejected, and
// restores the output directory. The first snapshot stays, as it does where an Envoy that reads files rejects it.
func (c *Controller) takenBack(ctx context.Context, refused *clients.RefusedError, id string, o Outcome) (Outcome, error) {
	o.Refusal = &publish.Refusal{Snapshot: o.Snapshot, Time: now(), Step: "clients", Findings: refused.Findings}
	o.Findings, o.TakenBack, o.Restored = refused.Findings, refused.TakenBack, true
	if !o.TakenBack {
		return o, nil
	}
	held := *o.Refusal
	held.Snapshot, c.refused = id, &held
	if !c.writes() || c.accepted == nil {
		return o, nil
	}
	plan, _, err := c.pipeline.Plan(ctx, c.accepted, time.Now())
	if err == nil && plan != nil {
		_, err = c.write(ctx, plan)
	}
	o.Restored = err == nil
	return o, err
}

// write publishes into the output directory, where there is one.
func (c *Controller) write(ctx context.Context, plan *planner.Plan) (pipeline.Result, error) {
	if !c.writes() {
		return pipeline.Result{}, nil
	}
	result, err := c.pipeline.Publish(ctx, c.dir, plan)
	if err == nil && c.dir.Lost() {
		err = publish.ErrLost // the files are not at the path that Envoy reads
	}
	return result, err
}

// keepRevision records the git commit of the source tree, whose snapshot is published.
func (c *Controller) keepRevision(ctx context.Context, snapshot string) error {
	if !c.writes() {
		return nil
	}
	return c.pipeline.KeepRevision(ctx, c.dir, snapshot)
}

// Settled reports whether the open output directory is as the last Plan and Publish left it, and
// nothing in it is due. The same snapshot would then give a plan that moves nothing.
func (c *Controller) Settled() bool {
	return !c.writes() || c.pipeline.Settled(c.dir, time.Now())
}

// Trim removes what nothing can use any more from the output directory, and from what is served.
// next is when to call it again; zero where nothing waits.
func (c *Controller) Trim(ctx context.Context) (trimmed Trimmed, next time.Time, err error) {
	now := time.Now()
	if c.writes() {
		if trimmed.Files, next, err = c.pipeline.Trim(ctx, c.dir, now); err != nil {
			return trimmed, next, err
		}
	}
	if c.options.Server == nil {
		return trimmed, next, nil
	}
	var then time.Time
	trimmed.Resources, then, err = c.options.Server.Trim(ctx, now)
	if next.IsZero() || !then.IsZero() && then.Before(next) {
		next = then
	}
	return trimmed, next, err
}

// Trimmed is what a Trim has removed.
type Trimmed struct {
	// Files are those that it wrote and removed.
	Files publish.Result
	// Resources is how many are no longer served.
	Resources int
}

// moves is how often something moved in the output directory.
func (c *Controller) moves() int {
	if c.dir == nil {
		return 0
	}
	return c.dir.Moves()
}

// SnapshotID returns the id of the snapshot on record in the output directory; empty where there is
// none.
func (c *Controller) SnapshotID() string {
	if c.dir == nil {
		return ""
	}
	m, err := c.dir.Reader().Manifest()
	if err != nil {
		return "" // Prepare or Plan says why
	}
	return m.Snapshot
}
