package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/check"
	"xdspub/cmd/settings"
	"xdspub/diag"
	"xdspub/diff"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/watch"
	"xdspub/watch/control"
	"xdspub/watch/freeze"
	"xdspub/watch/operator"
	"xdspub/xds"
)

func renderCommand() *cli.Command {
	return &cli.Command{
		Name:      "render",
		Usage:     "check a source tree, and publish it once",
		ArgsUsage: "SRC",
		Description: `If the tree has no errors, its resources are written into the output directory, in the order
that Envoy needs; if it has any, no published file changes. With --envoy-admin each step waits
until Envoy has acknowledged it, and what Envoy rejects is rolled back.

Examples:
  xdspub render --out /var/lib/xds --dry-run config/
  xdspub render --out /var/lib/xds config/
  xdspub render --out /var/lib/xds --envoy-admin http://127.0.0.1:9901 config/

Exit status: 0 published, or nothing to do; 1 the tree has errors, Envoy rejected it, or a pause or a
freeze holds it; 2 wrong usage; 3 could not run.`,
		Flags: options(settings.Render()),
		Action: action(func(c *call) error {
			v, o, err := settingsAndOptions(c, publishOptions)
			if err != nil {
				return err
			}
			return renderOnce(v, o)
		}),
	}
}

// renderOnce runs one reconcile for each target. A target with a fault keeps its output directory unchanged.
func renderOnce(v *call, all []watch.Options) error {
	gone, stop := untilGone(v, all)
	defer stop()
	var ended targetsEnded
	var list []*rendering
	for _, o := range all {
		if r := newRendering(v, o, &ended); r != nil {
			list = append(list, r)
		}
	}
	if len(list) == 0 {
		return ended.err(v.App.ErrWriter)
	}
	ctx, stop := context.WithCancel(v.Context)
	defer stop()
	runRemote(ctx, v, all[0].Log)
	end := showProgress(v, "checking "+all[0].Source.Path)
	checked, err := watch.Tree(all).Check(v.Context)
	end()
	if err != nil {
		return err
	}
	// Plan before opening a directory, because Open creates it: an invalid tree must not create its output.
	list = slices.DeleteFunc(list, func(r *rendering) bool {
		r.checked = checked.For(r.o.Target)
		r.plan, err = r.Plan(v.Context, r.checked)
		return ended.add(r.o, err)
	})
	if all[0].AllOrNothing {
		allOrNothing(list, v.RetryHeld.Value)
	}
	if all[0].Target != "" {
		checked.MergeTargets() // with the findings that the plans add
		printFindings(v, checked, slices.ContainsFunc(list, func(r *rendering) bool { return r.plan == nil }))
	}
	for _, r := range list {
		ended.add(r.o, r.finish(v))
	}
	awaitTrials(gone, v, list, &ended)
	return ended.err(v.App.ErrWriter)
}

// rendering is a render for one target.
type rendering struct {
	*watch.Controller
	o       watch.Options
	unasked error // why no running watch has taken --retry-held
	checked *check.Result
	plan    *planner.Plan
	trial   *control.Trial // nil if nothing awaits confirmation
}

// newRendering returns the rendering of a target; nil if a running watch has done the work, and ended has its
// error.
func newRendering(v *call, o watch.Options, ended *targetsEnded) *rendering {
	r := &rendering{Controller: watch.New(o), o: o}
	if v.RetryHeld.Value && !v.DryRun.Value {
		var done bool
		if done, r.unasked = handOver(v, o); done {
			ended.add(o, r.unasked)
			return nil
		}
	}
	return r
}

// allOrNothing sets the plans of all targets to nil if one target objects. With retryHeld, a held snapshot is
// no objection.
func allOrNothing(list []*rendering, retryHeld bool) {
	objection := func(r *rendering) *diag.Diagnostic {
		if retryHeld && r.plan != nil {
			return nil
		}
		return r.Objection(r.checked, r.plan)
	}
	i := slices.IndexFunc(list, func(r *rendering) bool { return objection(r) != nil })
	if i < 0 {
		return
	}
	said := objection(list[i])
	for _, r := range list {
		if objection(r) == nil {
			r.checked.Refuse(*said)
			r.plan = nil
		}
	}
}

// finish publishes the plan, or prints why there is no plan. With --dry-run, finish prints the plan.
func (r *rendering) finish(c *call) error {
	switch {
	case r.plan == nil:
		r.printOwn(c, true)
		fmt.Fprintln(c.App.ErrWriter, ofTarget(r.o, watch.InvalidMessage(r.checked.Summary)))
		if !c.DryRun.Value {
			if err := r.KeepGuarded(); err != nil {
				return err
			}
		}
		return &exit{status: exitRefused}
	case c.DryRun.Value:
		r.printOwn(c, false)
		return r.showPlan(c)
	}
	err := r.Open()
	if locked, ok := errors.AsType[*publish.LockedError](err); ok && r.unasked != nil {
		return fmt.Errorf("%w (asking it to retry failed: %w)", locked, r.unasked)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	if err := control.Forget(r.o.Out); err != nil {
		return err
	}
	return r.publish(c)
}

// frozenText returns why render publishes nothing during a freeze, with the remedy.
func frozenText(o watch.Options, frozen *freeze.State) string {
	return fmt.Sprintf("publishing into %s is frozen %s; xdspub render --reason TEXT publishes nevertheless%s", o.Out, frozen, goOn(o.WhileRefused))
}

// goOn returns text about the types whose changes go on during a freeze; empty without any.
func goOn(whileRefused []string) string {
	if len(whileRefused) == 0 {
		return ""
	}
	part := control.Part{WhileRefused: whileRefused}
	return "; " + part.String()
}

// printOwn prints the findings of a source tree without targets. renderOnce prints the findings of all targets
// together.
func (r *rendering) printOwn(c *call, refused bool) {
	if r.o.Target == "" {
		printFindings(c, r.checked, refused)
	}
}

// ofTarget returns a message with the name of its target, if there is one.
func ofTarget(o watch.Options, message string) string {
	if o.Target == "" {
		return message
	}
	return "target " + o.Target + ": " + message
}

// publish publishes a source tree into the open output directory, and prints the outcome.
func (r *rendering) publish(c *call) error {
	ctx, stop := interruptible(c)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // a log that nobody reads must not end a change half-way
	if c.RetryHeld.Value {
		r.RetryHeld()
	}
	if err := r.Prepare(ctx); err != nil {
		return err
	}
	if err := r.undoOverdue(ctx, c); err != nil {
		return err
	}
	if waits := r.Waits(); waits != "" && !r.Continues(r.checked) {
		r.printOwn(c, true)
		return &exit{exitRefused, errors.New(ofTarget(r.o, waits))}
	}
	plan, err := r.Plan(ctx, r.checked) // again, because no other writer can change the output now
	if err != nil {
		return err
	}
	frozen, err := r.Frozen(ctx, r.checked, plan)
	if err != nil {
		return err
	}
	r.printOwn(c, frozen != nil)
	if frozen != nil {
		if err := r.Settle(watch.Outcome{Verdict: watch.Waits}); err != nil {
			return err
		}
		return &exit{exitRefused, errors.New(ofTarget(r.o, frozenText(r.o, frozen)))}
	}
	outcome, err := r.PublishTree(ctx, r.checked, plan)
	r.trial = outcome.Trial
	r.Record(ctx, r.checked, outcome)
	err = cmp.Or(err, r.Settle(outcome))
	if outcome.Verdict == watch.Published {
		return r.trim(ctx, c, outcome)
	}
	if outcome.Verdict == "" {
		return err
	}
	if outcome.Verdict != watch.Invalid { // printOwn has printed the findings of Invalid
		printList(c, outcome.Findings)
	}
	fmt.Fprintln(c.App.ErrWriter, ofTarget(r.o, outcome.Message()))
	if err != nil {
		return err
	}
	return &exit{status: exitRefused}
}

// trim trims the output directory, and prints the outcome of the publish and when to trim again.
func (r *rendering) trim(ctx context.Context, c *call, outcome watch.Outcome) error {
	trimmed, next, err := r.Trim(ctx)
	if err != nil {
		return err
	}
	outcome.Moved.Steps = append(outcome.Moved.Steps, trimmed.Files.Steps...)
	if c.Quiet.Value {
		return nil
	}
	fmt.Fprintln(c.App.Writer, ofTarget(r.o, outcome.Message()))
	if !next.IsZero() {
		fmt.Fprintln(c.App.Writer, ofTarget(r.o, fmt.Sprintf("removed clusters stay published while connections drain: run render "+
			"again after %s to remove them", next.Format(time.RFC3339))))
	}
	r.sayTrial(c)
	return nil
}

// printList prints findings without lines of their source.
func printList(c *call, list diag.List) {
	printed := &check.Result{Snapshot: xds.NewSnapshot(nil), Line: func(diag.Position) (string, bool) { return "", false }}
	printed.Add(list)
	printFindings(c, printed, true)
}

// refuse prints why nothing is published, and returns an exit with exitRefused.
func refuse(c *call, checked *check.Result) error {
	printFindings(c, checked, true)
	fmt.Fprintln(c.App.ErrWriter, watch.InvalidMessage(checked.Summary))
	return &exit{status: exitRefused}
}

// showPlan prints what a publish would do: the plan, and its effects on a running Envoy.
func (r *rendering) showPlan(c *call) error {
	var b strings.Builder
	if err := writePlan(&b, r.o, r.plan); err != nil {
		return err
	}
	d, err := r.Difference(r.plan)
	if err != nil {
		return err
	}
	if err := d.WriteEffects(&b, diff.TextOptions{Color: colored(c, c.App.Writer), Most: mostShown}); err != nil {
		return err
	}
	_, err = io.WriteString(c.App.Writer, b.String())
	return err
}

// writePlan writes each step with its files, + for a new file, ~ for a changed one, - for a removed one; then the files
// that a later trim would remove.
func writePlan(b *strings.Builder, o watch.Options, plan *planner.Plan) error {
	fmt.Fprintln(b, ofTarget(o, "snapshot "+plan.ID))
	pending, err := publish.Pending(o.Out, plan.Change, publish.Options{Group: o.Group})
	if err != nil {
		return err
	}
	for i, s := range pending.Steps {
		fmt.Fprintf(b, "step %d: %s\n", i+1, s.Name)
		for _, f := range s.Write {
			mark := "~"
			if _, err := os.Lstat(filepath.Join(o.Out, filepath.FromSlash(f.Path))); err != nil {
				mark = "+"
			}
			fmt.Fprintf(b, "  %s %s (%d bytes)\n", mark, f.Path, len(f.Data))
		}
		for _, name := range s.Remove {
			fmt.Fprintf(b, "  - %s\n", name)
		}
	}
	if len(pending.Steps) == 0 {
		b.WriteString("nothing to do\n")
	}
	decisions, err := operator.ShownIn(o.Out)
	if err != nil {
		return err
	}
	writeDecisions(b, o.Out, decisions)
	if frozen, err := watch.FrozenIn(o, plan.ID); err != nil {
		return err
	} else if frozen != nil {
		fmt.Fprintf(b, "frozen: %s\n", frozenText(o, frozen))
	}
	guarded, approved, err := operator.GuardedIn(o.Out)
	if err != nil {
		return err
	}
	writeApproval(b, o.Out, guarded, approved)
	if plan.Held != nil {
		fmt.Fprintf(b, "held: Envoy rejected it at %s\n", plan.Held.Time.Format(time.RFC3339))
	}
	for _, g := range plan.Change.Manifest.Retired {
		what := g.File
		if g.Cluster != "" {
			what = fmt.Sprintf("cluster %q", g.Cluster)
		}
		when := "then"
		if g.Since.IsZero() { // this change retires it
			g.Since = time.Now()
		}
		switch at := g.Since.Add(o.TrimDelay); {
		case o.Envoys != nil:
			when = "when Envoy has drained"
		case at.After(time.Now()):
			when = "after " + at.Format(time.RFC3339)
		}
		fmt.Fprintf(b, "%s: trim\n  - %s\n", when, what)
	}
	return nil
}
