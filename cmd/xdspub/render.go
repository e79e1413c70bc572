package main

import (
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

	"xdspub/diag"
	"xdspub/envoy"
	"xdspub/pipeline"
	"xdspub/publish"
	"xdspub/xds"
)

func renderCommand() *cli.Command {
	return &cli.Command{
		Name:      "render",
		Usage:     "check a source tree and publish it once",
		ArgsUsage: "SRC",
		Flags: append(slices.Concat(sourceFlags(), publishFlags(), confirmFlags()), maxFindingsFlag(), retryHeldFlag(),
			&cli.BoolFlag{Name: "dry-run", EnvVars: env("dry-run"), Usage: "show the plan and write nothing", DisableDefaultText: true}),
		Action: func(c *cli.Context) error {
			source, err := oneArgument(c, "SRC")
			if err != nil {
				return err
			}
			v, err := settings(c, source)
			if err != nil {
				return err
			}
			o, err := publishOptions(v, source, newLogger(c.App.ErrWriter))
			if err != nil {
				return err
			}
			return renderOnce(v, o)
		},
	}
}

// renderOnce makes one pass. What is wrong leaves the output directory as it is.
func renderOnce(v values, o pipeline.Options) error {
	var unasked error // why no running watch did it
	if v.c.Bool("retry-held") && !v.c.Bool("dry-run") {
		var done bool
		if done, unasked = handOver(v, o); done {
			return unasked
		}
	}
	p := pipeline.New(o)
	checked, err := p.Check(v.c.Context)
	if err != nil {
		return err
	}
	// Planned before the directory is opened: a refusal must not even make it.
	plan, err := planFor(v, p, checked)
	switch {
	case err != nil:
		return err
	case plan == nil:
		return refuse(v.c, checked)
	case v.c.Bool("dry-run"):
		printFindings(v.c, checked)
		return showPlan(v.c.App.Writer, o, value(v, "group", v.c.String), plan)
	}
	dir, err := publish.Open(o.Out, publish.Options{Group: value(v, "group", v.c.String), Log: o.Log})
	if locked, ok := errors.AsType[*publish.LockedError](err); ok && unasked != nil {
		return fmt.Errorf("%w, which can't be asked: %w", locked, unasked)
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	ctx, stop := signal.NotifyContext(v.c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // a log that nobody reads must not end a change half-way
	if err := p.Recover(ctx, dir); err != nil {
		return err
	}
	if v.c.Bool("retry-held") {
		if err := p.Retry(ctx, dir); err != nil {
			return err
		}
	}
	plan, err = planFor(v, p, checked) // again, now that no other writer can change what is out
	switch {
	case err != nil:
		return err
	case plan == nil:
		return refuse(v.c, checked)
	case plan.Held != nil:
		checked.Add(plan.Held.Findings)
		printFindings(v.c, checked)
		fmt.Fprintln(v.c.App.ErrWriter, saysHeld(plan))
		return &exit{status: exitRefused}
	}
	printFindings(v.c, checked)
	result, err := p.Publish(ctx, dir, plan)
	if refused, ok := errors.AsType[*publish.RefusedError](err); ok {
		return refusedByEnvoy(v.c, plan, result, refused, err)
	}
	if err != nil {
		return err
	}
	trimmed, next, err := p.Trim(ctx, dir, time.Now())
	if err != nil {
		return err
	}
	result.Steps = append(result.Steps, trimmed.Steps...)
	fmt.Fprintln(v.c.App.Writer, saysPublished(plan, result))
	if !next.IsZero() {
		fmt.Fprintf(v.c.App.Writer, "what went stays for connections that drain: a run after %s trims it\n", next.Format(time.RFC3339))
	}
	return nil
}

// refusedByEnvoy prints why a change did not stay.
func refusedByEnvoy(c *cli.Context, plan *pipeline.Plan, result pipeline.Result, refused *publish.RefusedError, err error) error {
	printList(c, refused.Findings())
	fmt.Fprintln(c.App.ErrWriter, saysRefusedByEnvoy(plan, result, refused, err))
	if error(refused) != err {
		return err
	}
	return &exit{status: exitRefused}
}

// printList prints findings whose source is not at hand.
func printList(c *cli.Context, list diag.List) {
	printed := &pipeline.Checked{Snapshot: xds.NewSnapshot(nil), Line: func(diag.Position) (string, bool) { return "", false }}
	printed.Add(list)
	printFindings(c, printed)
}

// What became of a pass, in one sentence each.

func saysPublished(plan *pipeline.Plan, result pipeline.Result) string {
	written, removed := counts(result)
	return fmt.Sprintf("snapshot %s: %s written, %d removed%s", plan.ID, count(written, "file"), removed, confirmed(result))
}

func saysHeld(plan *pipeline.Plan) string {
	return fmt.Sprintf("snapshot %s is held since Envoy refused it at %s: what was out before stays; --retry-held tries it again", plan.ID, plan.Held.Time.Format(time.RFC3339))
}

func saysRefusedByEnvoy(plan *pipeline.Plan, result pipeline.Result, refused *publish.RefusedError, err error) string {
	return fmt.Sprintf("snapshot %s: Envoy refused it in the step %q: %s", plan.ID, refused.Refusal.Step, saysUndone(result, refused, err))
}

// saysUndone says what is out after a refusal; err is all that went wrong.
func saysUndone(result pipeline.Result, refused *publish.RefusedError, err error) string {
	switch {
	case error(refused) != err:
		return "it could not be put back whole, the next run goes on with that"
	case len(result.Undone) == 0:
		return "there is nothing to put back, so it stays"
	}
	return "what was out before is out again"
}

func saysRefused(checked *pipeline.Checked) string {
	return summary(checked.Summary) + ": refused, nothing was published"
}

// confirmed says in a few words what Envoys made of a change.
func confirmed(r pipeline.Result) string {
	if len(r.Outcomes) == 0 {
		return ""
	}
	worst := r.Outcomes[0]
	for _, o := range r.Outcomes {
		if o.Verdict != envoy.Confirmed {
			worst = o
		}
	}
	return ", " + worst.String()
}

// planFor makes a plan for what was checked. It is nil where findings refuse it,
// those that planning adds among them.
func planFor(v values, p *pipeline.Pipeline, checked *pipeline.Checked) (*pipeline.Plan, error) {
	if refused(v, checked) {
		return nil, nil
	}
	plan, list, err := p.Plan(checked.Snapshot, time.Now())
	checked.Add(list)
	if err != nil || refused(v, checked) {
		return nil, err
	}
	return plan, nil
}

// refused tells whether the findings forbid to publish.
func refused(v values, checked *pipeline.Checked) bool {
	return !checked.Accepted() || value(v, "warnings-as-errors", v.c.Bool) && checked.Summary.Warnings > 0
}

// refuse prints why nothing is published.
func refuse(c *cli.Context, checked *pipeline.Checked) error {
	printFindings(c, checked)
	fmt.Fprintln(c.App.ErrWriter, saysRefused(checked))
	return &exit{status: exitRefused}
}

func counts(r pipeline.Result) (written, removed int) {
	for _, s := range r.Steps {
		written += len(s.Written)
		removed += len(s.Removed)
	}
	return written, removed
}

// showPlan prints what a publish would do: each step with its files, + for a new
// one, ~ for a changed one, - for one that goes; then what would go later.
func showPlan(w io.Writer, o pipeline.Options, group string, plan *pipeline.Plan) error {
	var b strings.Builder
	fmt.Fprintf(&b, "snapshot %s\n", plan.ID)
	pending, err := publish.Pending(o.Out, plan.Change, publish.Options{Group: group})
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
		fmt.Fprintf(&b, "held since Envoy refused it at %s\n", plan.Held.Time.Format(time.RFC3339))
	}
	for _, g := range plan.Change.Manifest.Going {
		what := g.File
		if g.Cluster != "" {
			what = fmt.Sprintf("cluster %q", g.Cluster)
		}
		when := "then"
		if g.Since.IsZero() { // it begins to go with this
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
