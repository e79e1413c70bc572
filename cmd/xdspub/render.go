package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/pipeline"
	"xdspub/publish"
)

func renderCommand() *cli.Command {
	return &cli.Command{
		Name:      "render",
		Usage:     "check a source tree and publish it once",
		ArgsUsage: "SRC",
		Flags: append(append(sourceFlags(), publishFlags()...), maxFindingsFlag(),
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
	p := pipeline.New(o)
	checked, err := p.Check()
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
	if err != nil {
		return err
	}
	defer dir.Close()
	plan, err = planFor(v, p, checked) // again, now that no other writer can change what is out
	switch {
	case err != nil:
		return err
	case plan == nil:
		return refuse(v.c, checked)
	}
	printFindings(v.c, checked)

	ctx, stop := signal.NotifyContext(v.c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // a log that nobody reads must not end a change half-way
	result, err := p.Publish(ctx, dir, plan)
	if err != nil {
		return err
	}
	written, removed := counts(result)
	fmt.Fprintf(v.c.App.Writer, "snapshot %s: %s written, %d removed\n", plan.ID, count(written, "file"), removed)
	if !plan.NextTrim.IsZero() {
		fmt.Fprintf(v.c.App.Writer, "what went stays for connections that drain: a run after %s trims it\n", plan.NextTrim.Format(time.RFC3339))
	}
	return nil
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
	fmt.Fprintf(c.App.ErrWriter, "%s: refused, nothing was published\n", summary(checked.Summary))
	return &exit{status: exitRefused}
}

func counts(r publish.Result) (written, removed int) {
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
	steps, going := 0, plan.Change.Manifest.Going
	for _, part := range []publish.Plan{plan.Change, plan.Trim} {
		pending, err := publish.Pending(o.Out, part, publish.Options{Group: group})
		if err != nil {
			return err
		}
		for _, s := range pending.Steps {
			steps++
			fmt.Fprintf(&b, "step %d: %s\n", steps, s.Name)
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
		if len(part.Steps) > 0 {
			going = part.Manifest.Going
		}
	}
	if steps == 0 {
		b.WriteString("nothing to do\n")
	}
	for _, g := range going {
		what := g.File
		if g.Cluster != "" {
			what = fmt.Sprintf("cluster %q", g.Cluster)
		}
		fmt.Fprintf(&b, "after %s: trim\n  - %s\n", g.Since.Add(o.TrimDelay).Format(time.RFC3339), what)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
