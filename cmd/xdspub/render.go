package main

import (
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
	"xdspub/control"
	"xdspub/controller"
	"xdspub/diag"
	"xdspub/planner"
	"xdspub/publish"
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

Exit status: 0 published, or nothing to do; 1 the tree has errors, or Envoy rejected it;
2 wrong usage; 3 could not run.`,
		Flags: append(slices.Concat(sourceFlags(), publishFlags(), confirmFlags(), oracleFlags()), maxFindingsFlag(), colorFlag(), retryHeldFlag(),
			quietFlag(), logFormatFlag(),
			&cli.BoolFlag{Category: groupRun, Name: "dry-run", EnvVars: env("dry-run"), Usage: "show what would be published, step by step, and write nothing", DisableDefaultText: true}),
		Action: func(c *cli.Context) error {
			v, o, err := settingsAndOptions(c, publishOptions)
			if err != nil {
				return err
			}
			return renderOnce(v, o)
		},
	}
}

// renderOnce makes one reconcile. What is wrong leaves the output directory as it is.
func renderOnce(v values, o controller.Options) error {
	var unasked error // why no running watch did it
	if v.c.Bool("retry-held") && !v.c.Bool("dry-run") {
		var done bool
		if done, unasked = handOver(v, o); done {
			return unasked
		}
	}
	r := controller.New(o)
	end := showProgress(v.c, "checking "+o.Source.Path)
	checked, err := r.Check(v.c.Context)
	end()
	if err != nil {
		return err
	}
	// Planned before the directory is opened: a refusal must not even make it.
	plan, err := r.Plan(v.c.Context, checked)
	switch {
	case err != nil:
		return err
	case plan == nil:
		return refuse(v.c, checked)
	case v.c.Bool("dry-run"):
		printFindings(v.c, checked, false)
		return showPlan(v.c.App.Writer, o, plan)
	}
	err = r.Open()
	if locked, ok := errors.AsType[*publish.LockedError](err); ok && unasked != nil {
		return fmt.Errorf("%w (asking it to retry failed: %w)", locked, unasked)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	if err := control.Forget(o.Out); err != nil {
		return err
	}
	return publishChecked(v.c, r, checked)
}

// publishChecked publishes a source tree into the open output directory, and prints the outcome.
func publishChecked(c *cli.Context, r *controller.Controller, checked *check.Result) error {
	ctx, stop := interruptible(c)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // a log that nobody reads must not end a change half-way
	if c.Bool("retry-held") {
		r.RetryHeld()
	}
	if err := r.Prepare(ctx); err != nil {
		return err
	}
	plan, err := r.Plan(ctx, checked) // again, now that no other writer can change what is out
	if err != nil {
		return err
	}
	printFindings(c, checked, false)
	outcome, err := r.Publish(ctx, checked, plan)
	if outcome.Verdict == controller.Published {
		return trimPublished(ctx, c, r, outcome)
	}
	if outcome.Verdict == "" {
		return err
	}
	if outcome.Verdict != controller.Invalid { // whose findings are printed
		printList(c, outcome.Findings)
	}
	fmt.Fprintln(c.App.ErrWriter, outcome.Message())
	if err != nil {
		return err
	}
	return &exit{status: exitRefused}
}

// trimPublished trims, and prints what came out.
func trimPublished(ctx context.Context, c *cli.Context, r *controller.Controller, outcome controller.Outcome) error {
	trimmed, next, err := r.Trim(ctx)
	if err != nil {
		return err
	}
	outcome.Moved.Steps = append(outcome.Moved.Steps, trimmed.Files.Steps...)
	if c.Bool("quiet") {
		return nil
	}
	fmt.Fprintln(c.App.Writer, outcome.Message())
	if !next.IsZero() {
		fmt.Fprintf(c.App.Writer, "removed clusters stay published while connections drain: run render again after %s to remove them\n", next.Format(time.RFC3339))
	}
	return nil
}

// printList prints findings whose source is not at hand.
func printList(c *cli.Context, list diag.List) {
	printed := &check.Result{Snapshot: xds.NewSnapshot(nil), Line: func(diag.Position) (string, bool) { return "", false }}
	printed.Add(list)
	printFindings(c, printed, true)
}

// refuse prints why nothing is published.
func refuse(c *cli.Context, checked *check.Result) error {
	printFindings(c, checked, true)
	fmt.Fprintln(c.App.ErrWriter, controller.InvalidMessage(checked.Summary))
	return &exit{status: exitRefused}
}

// showPlan prints what a publish would do: each step with its files, + for a new
// one, ~ for a changed one, - for one that goes; then what would go later.
func showPlan(w io.Writer, o controller.Options, plan *planner.Plan) error {
	var b strings.Builder
	fmt.Fprintf(&b, "snapshot %s\n", plan.ID)
	pending, err := publish.Pending(o.Out, plan.Change, publish.Options{Group: o.Group})
	if err != nil {
		return err
	}
	for i, s := range pending.Steps {
		fmt.Fprintf(&b, "step %d: %s\n", i+1, s.Name)
		for _, f := range s.Write {
			mark := "~"
			if _, err := os.Lstat(filepath.Join(o.Out, filepath.FromSlash(f.Path))); err != nil {
				mark = "+"
			}
			fmt.Fprintf(&b, "  %s %s (%d bytes)\n", mark, f.Path, len(f.Data))
		}
		for _, name := range s.Remove {
			fmt.Fprintf(&b, "  - %s\n", name)
		}
	}
	if len(pending.Steps) == 0 {
		b.WriteString("nothing to do\n")
	}
	if plan.Held != nil {
		fmt.Fprintf(&b, "held: Envoy rejected it at %s\n", plan.Held.Time.Format(time.RFC3339))
	}
	for _, g := range plan.Change.Manifest.Retired {
		what := g.File
		if g.Cluster != "" {
			what = fmt.Sprintf("cluster %q", g.Cluster)
		}
		when := "then"
		if g.Since.IsZero() { // it is retired by this change
			g.Since = time.Now()
		}
		switch at := g.Since.Add(o.TrimDelay); {
		case o.Envoys != nil:
			when = "when Envoy has drained"
		case at.After(time.Now()):
			when = "after " + at.Format(time.RFC3339)
		}
		fmt.Fprintf(&b, "%s: trim\n  - %s\n", when, what)
	}
	_, err = io.WriteString(w, b.String())
	return err
}
