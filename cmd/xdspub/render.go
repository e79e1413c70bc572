package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/diag"
	"xdspub/pipeline"
	"xdspub/publish"
)

func renderCommand() *cli.Command {
	return &cli.Command{
		Name:      "render",
		Usage:     "check a source tree and publish it once",
		ArgsUsage: "SRC",
		Flags: append(append(sourceFlags(), publishFlags()...),
			&cli.BoolFlag{Name: "dry-run", EnvVars: env("dry-run"), Usage: "show the plan and write nothing"}),
		Action: func(c *cli.Context) error {
			source, err := oneArgument(c, "SRC")
			if err != nil {
				return err
			}
			if err := settle(c, source); err != nil {
				return err
			}
			o, err := options(c, source, newLogger(c.App.ErrWriter))
			if err != nil {
				return err
			}
			return renderOnce(c, pipeline.New(o), o)
		},
	}
}

// renderOnce makes one pass. What is wrong leaves the output directory as it is.
func renderOnce(c *cli.Context, p *pipeline.Pipeline, o pipeline.Options) error {
	checked, err := p.Check()
	if err != nil {
		return err
	}
	if checked.Accepted() && verdict(c, checked) == nil {
		if c.Bool("dry-run") {
			return showPlan(c, p, o, checked)
		}
		return publishOnce(c, p, o, checked)
	}
	return refuse(c, checked)
}

// refuse prints why nothing is published.
func refuse(c *cli.Context, checked *pipeline.Checked) error {
	if err := printFindings(c.App.ErrWriter, checked); err != nil {
		return err
	}
	fmt.Fprintf(c.App.ErrWriter, "%s: refused, nothing was published\n", summary(checked.Summary))
	return &exit{status: exitRefused}
}

func printFindings(w io.Writer, checked *pipeline.Checked) error {
	return diag.WriteText(w, checked.Diagnostics, diag.TextOptions{Line: checked.Line, Color: colored(w)})
}

func publishOnce(c *cli.Context, p *pipeline.Pipeline, o pipeline.Options, checked *pipeline.Checked) error {
	// Planned before the directory is opened: a refusal must not even make it.
	if plan, err := plan(p, checked); err != nil {
		return err
	} else if plan == nil {
		return refuse(c, checked)
	}
	dir, err := publish.Open(o.Out, publish.Options{Group: c.String("group"), Log: o.Log})
	if err != nil {
		return err
	}
	defer dir.Close()
	plan, err := plan(p, checked) // again, now that no other writer can change what is out
	if err != nil {
		return err
	}
	if plan == nil {
		return refuse(c, checked)
	}
	if err := printFindings(c.App.ErrWriter, checked); err != nil {
		return err
	}
	result, err := p.Publish(c.Context, dir, plan)
	if err != nil {
		return err
	}
	written, removed := counts(result)
	fmt.Fprintf(c.App.Writer, "snapshot %s: %s written, %d removed\n", plan.ID, count(written, "file"), removed)
	return nil
}

// plan is nil where the findings that rendering adds refuse the Snapshot.
func plan(p *pipeline.Pipeline, checked *pipeline.Checked) (*pipeline.Plan, error) {
	plan, list, err := p.Plan(checked.Snapshot, time.Now())
	checked.Add(list)
	return plan, err
}

func counts(r publish.Result) (written, removed int) {
	for _, s := range r.Steps {
		written += len(s.Written)
		removed += len(s.Removed)
	}
	return written, removed
}

// showPlan prints what a publish would do: each step with its files, + for a new
// one, ~ for a changed one, - for one that goes.
func showPlan(c *cli.Context, p *pipeline.Pipeline, o pipeline.Options, checked *pipeline.Checked) error {
	plan, err := plan(p, checked)
	if err != nil {
		return err
	}
	if plan == nil {
		return refuse(c, checked)
	}
	if err := printFindings(c.App.ErrWriter, checked); err != nil {
		return err
	}
	w := c.App.Writer
	fmt.Fprintf(w, "snapshot %s\n", plan.ID)
	steps := 0
	for _, part := range []publish.Plan{plan.Change, plan.Trim} {
		pending, err := publish.Pending(o.Out, part)
		if err != nil {
			return err
		}
		for _, s := range pending.Steps {
			steps++
			fmt.Fprintf(w, "step %d: %s\n", steps, s.Name)
			for _, f := range s.Write {
				mark := "~"
				if _, err := os.Lstat(filepath.Join(o.Out, filepath.FromSlash(f.Path))); err != nil {
					mark = "+"
				}
				fmt.Fprintf(w, "  %s %s (%d bytes)\n", mark, f.Path, len(f.Data))
			}
			for _, name := range s.Remove {
				fmt.Fprintf(w, "  - %s\n", name)
			}
		}
	}
	if steps == 0 {
		fmt.Fprintln(w, "nothing to do")
	}
	return nil
}
