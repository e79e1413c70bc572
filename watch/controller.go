// Package watch publishes a source tree, once or after each change. Package watch decides what happens to each
// snapshot: an invalid snapshot is not published, a snapshot that Envoy refused before is held, and any other
// snapshot is published. Package watch also retries held snapshots on request, completes the change of a killed
// process, and trims unused files. Package watch knows no flags and prints nothing.
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
// Watch runs these steps in a loop.
package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/event"
	"xdspub/render/history"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/validate/transition"
	"xdspub/watch/control"
	"xdspub/watch/freeze"
	"xdspub/watch/operator"
	"xdspub/watch/pipeline"
	"xdspub/xds"
	"xdspub/xds/clients"
	"xdspub/xds/variants"
)

// Options configure a Controller. With a Server, Out may be empty; then the Controller writes no files.
type Options struct {
	pipeline.Options
	// Server serves the published snapshots over the network; nil without a server.
	Server Server
	// ByNode means that the Server derives dynamic parameters from the nodes of its clients.
	ByNode bool
	// Group is the name or number of the group that may read secret files; empty means the group of the
	// output directory.
	Group string
	// WarningsAsErrors makes a source tree with warnings invalid.
	WarningsAsErrors bool
	// Target is the name of the target; empty if the source tree has no targets.
	Target string
	// Guards makes the guards run (transition.Guard) with MaxRemoval, a percentage. A source tree without any
	// resource, which Source.AllowEmpty allows, may remove everything.
	Guards     bool
	MaxRemoval int
	// AllOrNothing means that no target is published while any target has an Objection.
	AllOrNothing bool
	// WhileRefused are the names (part.Names) of the types whose changes are published while the source tree is
	// refused. AllOrNothing excludes WhileRefused.
	WhileRefused []string
	// History limits the history of published snapshots; without History.Keep nothing is recorded. The history and the
	// decisions of operators are in the output directory. A Server without an output directory has both in the
	// directory State; if State is empty, the Server has neither.
	History history.Options
	State   string
	// Freeze are the times in which a change is not published.
	Freeze freeze.Windows
	// ConfirmWithin is how long a snapshot stays published without the confirmation of an operator; 0 without limit. It
	// needs Out or State, a History of two entries, and neither AllOrNothing nor WhileRefused.
	ConfirmWithin time.Duration
	// ClientsConfirm means that the Server waits for acknowledgements of clients.
	ClientsConfirm bool
	// Command, By and Reason are those of the entries of the history.
	Command, By, Reason string
	// About returns the author and the subject of a git commit; nil means revision.About.
	About func(ctx context.Context, revision string) (author, subject string)
}

// Observer gets the state of a Watch. Its methods must not block, and must be safe for concurrent use.
type Observer interface {
	// Tell sets the state of the watch of a target; target is empty without targets. The Observer must not
	// change w.
	Tell(target string, w control.Watch)
	// Read sets the snapshot of the source tree as read last, which may be invalid, for the same client as Published.
	Read(target string, s *xds.Snapshot)
	// Published sets the published snapshot of a target: the resources for the files, or for a client without
	// parameters.
	Published(target string, s *xds.Snapshot)
	// Removed tells the Observer that the settings no longer have a target.
	Removed(target string)
}

// Store shows whether an Observer has written the published snapshots to the store of a fleet. A Store is safe for
// concurrent use.
type Store interface {
	// State returns the state of a target in the store.
	State(target string) *control.Store
	// Changed receives a value after a State has changed. One value may stand for several changes.
	Changed() <-chan struct{}
}

// Server serves snapshots to clients of the xDS transport protocol.
type Server interface {
	// Publish serves a snapshot. Publish of the served snapshot changes nothing. A *clients.RefusedError
	// means that clients rejected the snapshot; after any other error the Server serves the snapshot before.
	Publish(ctx context.Context, s *xds.Snapshot) error
	// Restore serves a snapshot that clients may have from an earlier process. Restore waits for no client.
	Restore(ctx context.Context, s *xds.Snapshot) error
	// Served returns the published snapshot for a client without a node, with the retired resources that stay
	// until Trim. Served returns nil before the first Publish.
	Served() *xds.Snapshot
	// Transitions returns the change that a snapshot means for clients, once for each set of parameters that
	// the variants of resources distinguish, and the losses of clients that ask for listeners by name. From
	// includes the retired resources that stay until Trim. Transitions returns nil before the first Publish.
	Transitions(s *xds.Snapshot) []variants.Transition
	// Retry sends clients again the resources that they rejected.
	Retry(ctx context.Context) error
	// Confirms reports whether Publish waits until a quorum of clients has acknowledged the snapshot.
	Confirms() bool
	// Unconfirmed returns why the quorum of clients has not acknowledged the last published snapshot; empty if
	// the quorum has acknowledged it, or if the Server asks no client.
	Unconfirmed() string
	// Acknowledged reports whether the quorum, and at least one client, has acknowledged the last published snapshot.
	Acknowledged() bool
	// ConfirmedLate receives a value when the quorum has acknowledged the published snapshot after Publish returned.
	ConfirmedLate() <-chan struct{}
	// Clients returns the clients of the Server.
	Clients() []clients.Client
	// Tell sets the state of the watch that the Server shows. The caller must not change w afterwards.
	Tell(w control.Watch)
	// Trim removes retired resources after their delay, and returns their number. next is the time for the
	// next call; zero if no resource waits.
	Trim(ctx context.Context, now time.Time) (removed int, next time.Time, err error)
}

// Controller publishes one source tree into an output directory, to a Server, or both. Controller is not safe
// for concurrent use.
type Controller struct {
	options  Options
	log      *event.Log
	pipeline *pipeline.Pipeline
	// given is Options.Out as passed to New. options.Out is the directory that the path led to when dir was
	// opened; symbolic links may change afterwards.
	given string
	dir   *publish.Dir // nil while closed
	state *publish.Dir // of Options.State; nil while closed
	// current is the id of the published snapshot of a Server without an output directory, possibly of an earlier
	// process; empty if nothing is published, or if the history does not know.
	current string
	retry   bool // the next Prepare releases held snapshots
	// accepted is the last published snapshot, possibly of an earlier process. served is the last snapshot that
	// the Server got. Each is nil if absent.
	accepted, served *xds.Snapshot
	// refused are the refusals of the snapshots that clients of the Server rejected, and that are held.
	refused []publish.Refusal
	// decisions are those of the last Prepare, and clock tells when they end.
	decisions operator.Decisions
	pin       *pinned // nil before it is read
	guarding  guarding
	clock     operator.Clock
	// frozen is the freeze of the last Prepare; nil without one. through is the decision of an operator who publishes
	// during a freeze; nil for none. overridden means that the log has this decision.
	frozen     *freeze.State
	through    *control.Decision
	overridden bool
	again      again
	live       live
	owners     ownersOf // of the last plan
	// apart means that clients of the Server may need other variants than the output directory has: the last
	// planned tree has variants, its clients are unknown, or the output directory has secrets with constraints.
	apart  bool
	judged judged
	// history is nil before the first Record.
	history *history.Store
	entered entered
}

// New returns a Controller. New doesn't touch the disk.
func New(o Options) *Controller {
	return &Controller{options: o, log: o.Log, pipeline: pipeline.New(o.Options), given: o.Out, clock: operator.SystemClock()}
}

// Configure replaces the options, except Out, State, Server, Clock and Retried.
func (c *Controller) Configure(o Options) {
	o.State = c.options.State
	o.Out, o.Server, o.Clock, o.Retried = c.options.Out, c.options.Server, c.options.Clock, c.options.Retried
	c.options, c.pipeline, c.judged, c.history = o, pipeline.New(o.Options), judged{}, nil
	c.live.of, c.live.tree, c.again, c.owners = nil, nil, again{}, ownersOf{}
	if c.dir != nil {
		c.pipeline.Opened(c.dir)
	}
}

// Trust makes the Controller assume, until Trust(false), that no other process changes the open output
// directory. The Controller then skips reading known files again.
func (c *Controller) Trust(trust bool) { c.pipeline.Trust(trust) }

// Plan plans the publish of a checked source tree, and adds its findings to checked. Plan changes nothing on
// disk, and works without an open output directory. The plan is nil if the findings make the source tree
// invalid. If the snapshot is held, Plan.Held is its refusal. A *published.UsageError means that the options
// don't suit the output directory.
func (c *Controller) Plan(ctx context.Context, checked *check.Result) (*planner.Plan, error) {
	c.guarding = guarding{}
	return c.plan(ctx, checked, planning{guard: c.guard(checked), heeds: c.place() != ""})
}

// planning is how a snapshot is planned.
type planning struct {
	of    *publish.Part     // nil unless the source tree is refused, and the snapshot is a part
	guard *transition.Guard // bounds what the plan may remove; nil allows every removal
	heeds bool              // an approval of an operator lets through what the guard refuses
}

// plan is Plan for a source tree, a part, or a snapshot of the history.
func (c *Controller) plan(ctx context.Context, checked *check.Result, how planning) (*planner.Plan, error) {
	of := how.of
	c.apart = c.tellsApart(checked)
	if checked.Invalid(c.options.WarningsAsErrors) {
		return nil, nil
	}
	if i := slices.IndexFunc(c.refused, func(r publish.Refusal) bool { return r.Snapshot == c.servedID(checked) }); i >= 0 {
		return &planner.Plan{ID: c.planID(checked), Snapshot: checked.Snapshot, Held: &c.refused[i], Part: of != nil}, nil
	}
	if held := c.heldMeanwhile(checked); of == nil && held != nil {
		return &planner.Plan{ID: c.planID(checked), Snapshot: checked.Snapshot, Held: held}, nil
	}
	plan, findings, err := c.planned(ctx, checked, of, how.guard)
	switch {
	case err != nil || how.guard == nil:
	case how.heeds:
		plan, findings, err = c.heedGuard(ctx, checked, how.guard, plan, findings)
	default:
		offer(findings, wayOut)
	}
	checked.Add(findings)
	if err != nil || checked.Invalid(c.options.WarningsAsErrors) {
		return nil, err
	}
	return plan, nil
}

// toServe returns the snapshot for the Server: all variants of the resources, or only the variants for
// Source.Client if that is set.
func (c *Controller) toServe(checked *check.Result) *xds.Snapshot {
	if c.options.Source.Client != nil {
		return checked.Snapshot
	}
	return checked.Variants.All()
}

// toPublish returns the snapshot for the Server or, without a Server, the snapshot for the files.
func (c *Controller) toPublish(checked *check.Result) *xds.Snapshot {
	if c.options.Server == nil {
		return checked.Snapshot
	}
	return c.toServe(checked)
}

// servedID returns the id of the snapshot for the Server, including the constraints of variants.
func (c *Controller) servedID(checked *check.Result) string {
	if c.options.Server == nil || c.options.Source.Client != nil {
		return checked.Snapshot.ID()
	}
	return checked.Variants.ID()
}

// planID returns the id of the snapshot for the record: the id of the files, if the Controller writes files.
func (c *Controller) planID(checked *check.Result) string {
	if c.writes() {
		return checked.Snapshot.ID()
	}
	return c.servedID(checked)
}

func (c *Controller) planned(
	ctx context.Context, checked *check.Result, of *publish.Part, guard *transition.Guard,
) (plan *planner.Plan, findings diag.List, err error) {
	if c.options.Server != nil {
		if findings, err = c.transitions(c.toServe(checked), guard); err != nil {
			return nil, nil, err
		}
	}
	s := checked.Snapshot
	if !c.writes() {
		change := publish.Plan{Manifest: publish.Manifest{Part: of}}
		return &planner.Plan{ID: c.planID(checked), Snapshot: s, Part: of != nil, Change: change}, findings, nil
	}
	plan, more, err := c.planFiles(ctx, s, of, checked.Owners, guard)
	more = slices.DeleteFunc(more, func(d diag.Diagnostic) bool {
		return slices.ContainsFunc(findings, func(f diag.Diagnostic) bool { return f.Code == d.Code && f.Message == d.Message })
	})
	return plan, append(findings, more...), err
}

// planFiles plans the files of a Snapshot. of is nil if the Snapshot is a whole source tree. owners are the patterns of
// the folders that own the resources, and guard bounds what the plan may remove.
func (c *Controller) planFiles(
	ctx context.Context, s *xds.Snapshot, of *publish.Part, owners []string, guard *transition.Guard,
) (plan *planner.Plan, list diag.List, err error) {
	c.pipeline.Guard(guard)
	if of != nil {
		plan, list, err = c.pipeline.PlanPart(ctx, s, *of, time.Now())
	} else {
		plan, list, err = c.pipeline.Plan(ctx, s, time.Now())
	}
	if plan != nil && len(owners) > 0 {
		plan.Change.Manifest.Owners = c.owners.recordOf(s, owners)
	}
	return plan, list, err
}

// guard returns the Guard of the change to a checked source tree; nil allows every removal. The guards have judged the
// snapshot of a pin before the pin: a rollback that was killed half-way must go on.
func (c *Controller) guard(checked *check.Result) *transition.Guard {
	pinned := c.pin != nil && c.pin.result != nil && c.pin.result.Snapshot == checked.Snapshot
	if !c.options.Guards || pinned || checked.Variants.All().Len() == 0 {
		return nil
	}
	return &transition.Guard{MaxRemoval: c.options.MaxRemoval}
}

// Open locks the output directory, and creates it if missing. Without an output directory, Open opens Options.State.
// The Controller then uses the directory that the path leads to now, even if a symbolic link in the path
// changes. A *publish.LockedError means that another process has locked the directory.
func (c *Controller) Open() error {
	c.history = nil
	if !c.writes() {
		if c.options.State == "" || c.state != nil {
			return nil
		}
		return c.openState()
	}
	if operator.IsServer(c.given) {
		return fmt.Errorf("%s is the directory of serve --state: publish files into another directory", c.given)
	}
	dir, err := c.openDir(c.given)
	if err != nil {
		return err
	}
	c.dir, c.options.Out = dir, dir.Path()
	c.pipeline.Opened(dir)
	return nil
}

// openDir opens a directory that must not overlap the source tree. A rollback has no source tree.
func (c *Controller) openDir(dir string) (*publish.Dir, error) {
	if c.options.Source.Path != "" {
		if checked := c.options.Source.Overlap(dir); checked != nil {
			return nil, errors.New(checked.Diagnostics[0].Message)
		}
	}
	return publish.Open(dir, publish.Options{Group: c.options.Group, Log: c.options.Log})
}

// writes reports whether the Controller has an output directory.
func (c *Controller) writes() bool { return c.given != "" }

// kept returns the directory with the history and the decisions of operators: the output directory, or Options.State.
// kept returns nil if the directory is closed, or if the Controller has neither.
func (c *Controller) kept() *publish.Dir {
	if c.dir != nil {
		return c.dir
	}
	return c.state
}

// place returns the path of the output directory, or of Options.State without an output directory; empty for neither.
func (c *Controller) place() string {
	if d := c.kept(); d != nil {
		return d.Path()
	}
	return cmp.Or(c.options.Out, c.options.State)
}

// IsOpen reports whether the output directory is open; without an output directory, whether Options.State is open or
// empty. A lost directory is open until Close.
func (c *Controller) IsOpen() bool { return c.kept() != nil || c.place() == "" }

// Lost reports whether the open directory was removed or replaced.
func (c *Controller) Lost() bool { return c.kept() != nil && c.kept().Lost() }

// Close unlocks the open directories.
func (c *Controller) Close() {
	for _, d := range []**publish.Dir{&c.dir, &c.state} {
		if *d != nil {
			(*d).Close()
			*d = nil
		}
	}
	c.history = nil
}

// RetryHeld makes the next Prepare release the held snapshots.
func (c *Controller) RetryHeld() { c.retry = true }

// Prepare makes the open directory ready for Plan. Prepare reads the decisions of the operators, and whether a freeze
// is in force. Prepare completes the rollback that a killed process began, and shifts the recorded times if the clock
// was set forward. After RetryHeld, Prepare also releases the held snapshots, and makes the Server send again what
// clients rejected, unless nothing may change.
func (c *Controller) Prepare(ctx context.Context) error {
	c.takeFreeze()
	if c.kept() != nil {
		if err := c.takeDecisions(); err != nil {
			return err
		}
	}
	if c.writes() {
		if err := c.pipeline.Recover(ctx, c.dir); err != nil {
			return err
		}
		if err := c.pipeline.KeepTime(c.dir); err != nil {
			return err
		}
	}
	if !c.retry || c.isPaused() {
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
	c.retry, c.refused, c.live.held, c.live.rejected = false, nil, held{}, nil
	return nil
}

// Publish executes the plan for a checked source tree. A nil plan means an invalid source tree. After an
// error each published file is whole, and the next plan continues from there. An error with the Verdict
// RefusedByEnvoy means that the rollback is incomplete. publish.ErrLost means that the output directory was
// removed or replaced, so that all files must be published again. After the files, Publish passes the
// snapshot to the Server.
func (c *Controller) Publish(ctx context.Context, checked *check.Result, plan *planner.Plan) (Outcome, error) {
	switch {
	case plan == nil:
		return outcomeOf(Invalid, checked, nil, pipeline.Result{}), nil
	case plan.Held != nil:
		c.hold(plan, checked, plan.Held)
		return outcomeOf(Held, checked, plan, pipeline.Result{}), nil
	}
	approval, err := c.beginUse(checked, plan)
	if err != nil {
		return Outcome{}, err
	}
	before, began := c.recorded(ctx, checked.Snapshot), time.Now()
	result, err := c.write(ctx, plan)
	wrote := time.Now()
	if errors.Is(err, publish.ErrLost) {
		return Outcome{}, err
	}
	if refused, ok := errors.AsType[*publish.RefusedError](err); ok {
		o := outcomeOf(RefusedByEnvoy, checked, plan, result)
		o.Refusal, o.Findings, o.Began, o.Approval = &refused.Refusal, refused.Findings(), began, approval
		if o.Restored = error(refused) == err; o.Restored {
			c.hold(plan, checked, o.Refusal)
			err = nil
		}
		return o, err
	}
	if err == nil && c.options.Server != nil {
		if err = c.serveAfter(ctx, before, c.toServe(checked)); err == nil {
			c.served = c.toServe(checked)
		}
		if refused, ok := errors.AsType[*clients.RefusedError](err); ok {
			o := outcomeOf(RefusedByEnvoy, checked, plan, result)
			o.Began, o.Approval = began, approval
			if o, err = c.takenBack(ctx, refused, c.servedID(checked), o); o.TakenBack && o.Restored {
				c.hold(plan, checked, o.Refusal)
			}
			return o, err
		}
	}
	if err != nil {
		return Outcome{}, err
	}
	c.current = plan.ID
	c.accepted = checked.Snapshot
	c.live.published(c.toPublish(checked), checked.Owners, plan.Change.Manifest.Part)
	if !plan.Part {
		c.refused = nil
		c.live.publishedWhole(checked)
	}
	o := outcomeOf(Published, checked, plan, result)
	o.Served, o.Began, o.Approval, o.WithoutFiles = c.servedID(checked), began, approval, !c.writes()
	if o.FilesTook = wrote.Sub(began); c.options.Server != nil {
		o.ClientsTook = time.Since(wrote)
	}
	return o, nil
}

// takenBack holds a snapshot that clients of the Server rejected, and publishes the snapshot before into the
// output directory again. id is the id of the snapshot for the Server. If the Server has served no snapshot
// before, the rejected snapshot stays published, as with an Envoy that reads files.
func (c *Controller) takenBack(ctx context.Context, refused *clients.RefusedError, id string, o Outcome) (Outcome, error) {
	o.Refusal = &publish.Refusal{Snapshot: o.Snapshot, Time: now(), Step: "clients", Findings: refused.Findings}
	o.Findings, o.TakenBack, o.Restored = refused.Findings, refused.TakenBack, true
	if !o.TakenBack {
		c.current = o.Snapshot
		return o, nil
	}
	refusal := *o.Refusal
	refusal.Snapshot = id
	c.refused = append(c.refused, refusal)
	if !c.writes() || c.accepted == nil {
		return o, nil
	}
	plan, _, err := c.planFiles(ctx, c.accepted, c.live.part, c.live.owners, nil) // clients have what is accepted
	if err == nil && plan != nil {
		_, err = c.write(ctx, plan)
	}
	o.Restored = err == nil
	return o, err
}

// write publishes into the output directory, if the Controller has one.
func (c *Controller) write(ctx context.Context, plan *planner.Plan) (pipeline.Result, error) {
	if !c.writes() {
		return pipeline.Result{}, nil
	}
	wrote, err := c.keepOwners(plan)
	if err != nil {
		return pipeline.Result{}, err
	}
	result, err := c.pipeline.Publish(ctx, c.dir, plan)
	if err == nil && c.dir.Lost() {
		err = publish.ErrLost // Envoy's path no longer leads to the files
	}
	if err == nil && wrote {
		err = c.forgetOwners(plan.Change.Manifest.Owners)
	}
	return result, err
}

// keepRevision records the git commit of the source tree for a published snapshot, and returns the commit.
func (c *Controller) keepRevision(ctx context.Context, snapshot string) (commit string, err error) {
	if !c.writes() {
		return "", nil
	}
	return c.pipeline.KeepRevision(ctx, c.dir, snapshot)
}

// Settled reports whether the open output directory is unchanged since the last Plan and Publish, and no trim
// is due. The plan for the same snapshot would then move no file. Without an output directory, Settled returns
// true.
func (c *Controller) Settled() bool {
	return !c.writes() || c.pipeline.Settled(c.dir, time.Now())
}

// Trim removes retired files that no Envoy can use from the output directory, and retired resources whose delay
// is over from the Server. next is the time for the next call; zero if nothing waits.
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

// Trimmed is the result of a Trim.
type Trimmed struct {
	// Files lists the files that Trim wrote and removed.
	Files publish.Result
	// Resources is the number of resources that the Server no longer serves.
	Resources int
}

// moves returns how many files and records the Controller has moved or removed since it opened the output
// directory; 0 while the directory is closed.
func (c *Controller) moves() int {
	if c.dir == nil {
		return 0
	}
	return c.dir.Moves()
}

// SnapshotID returns the id of the recorded snapshot in the output directory; empty if the directory is not
// open, or has no record or a damaged one. Without an output directory, SnapshotID returns the id of the snapshot that
// was served last.
func (c *Controller) SnapshotID() string {
	switch {
	case !c.writes():
		return c.current
	case c.dir == nil:
		return ""
	}
	m, err := c.dir.Reader().Manifest()
	if err != nil {
		return "" // Prepare or Plan reports the error
	}
	return m.Snapshot
}
