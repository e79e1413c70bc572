package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/urfave/cli/v2"

	"xdspub/cmd/settings"
	"xdspub/render/publish"
	"xdspub/watch"
	"xdspub/watch/control"
)

func pauseCommand() *cli.Command {
	return &cli.Command{
		Name:  "pause",
		Usage: "publish nothing into an output directory until resume",
		Description: `While an output directory is paused, a watch or server reads and checks the source tree, and
reports its findings. No file of the directory changes, and no client of serve gets anything new:
what is unused stays, and a file that somebody edits is not restored. A rollback of what Envoy has
rejected is completed. A pause outlasts a restart; status, the log, metrics and the page show it.

Examples:
  xdspub pause --out /var/lib/xds --reason "incident 42"
  xdspub pause --out /var/lib/xds --reason "load test" --for 2h

Exit status: 0 paused, 1 somebody has paused the directory before, 2 wrong usage,
3 could not run.`,
		Flags: options(settings.Pause()),
		Action: action(func(c *call) error {
			switch {
			case c.Reason.Value == "":
				return usagef("--reason is required: see %s", helpFor("pause"))
			case c.For.Given() && c.For.Value <= 0:
				return c.For.Invalid(c.For.Value.String(), "write a time above 0s")
			case c.NArg() > 0:
				return usagef("pause takes no arguments: write --out DIR for the output directory")
			}
			if err := c.Check(settings.Pause()...); err != nil {
				return err
			}
			asked := control.Pause{By: operatorOf(), Reason: c.Reason.Value, For: c.For.Value.Seconds(), Replace: c.Replace.Value}
			return decide(c, decision{
				name: "pause publishing",
				ask: func(ctx context.Context, out string) (control.Result, error) {
					return control.AskPause(ctx, out, asked)
				},
				do: func(out string) (control.Result, error) { return watch.Pause(out, asked) },
			})
		}),
	}
}

func resumeCommand() *cli.Command {
	return &cli.Command{
		Name:  "resume",
		Usage: "end a pause, and publish what waits",
		Description: `A running watch or server publishes its source tree at once, and resume waits for the outcome.
Without a watch, the next render or watch publishes. During a freeze of the settings, --reason
publishes the source tree as it is now, and the next change waits again.

Examples:
  xdspub resume --out /var/lib/xds
  xdspub resume --out /var/lib/xds --reason "incident 42"

Exit status: 0 published, or nothing was paused; 1 the tree has errors, Envoy rejected it, or a
freeze holds it; 2 wrong usage; 3 could not run.`,
		Flags: options(settings.Resume()),
		Action: action(func(c *call) error {
			if c.NArg() > 0 {
				return usagef("resume takes no arguments: write --out DIR for the output directory")
			}
			if err := c.Check(settings.Resume()...); err != nil {
				return err
			}
			asked := control.Resume{By: operatorOf(), Reason: c.Reason.Value}
			return decide(c, decision{
				name: "resume publishing",
				ask: func(ctx context.Context, out string) (control.Result, error) {
					return control.AskResume(ctx, out, asked)
				},
				do: func(out string) (control.Result, error) { return watch.Resume(out, asked) },
			})
		}),
	}
}

// decision is a command by which an operator decides. ask has the watch of an output directory execute it, do executes
// it without a watch.
type decision struct {
	name string
	ask  func(ctx context.Context, out string) (control.Result, error)
	do   func(out string) (control.Result, error)
}

// decide executes a decision, and prints its Result.
func decide(c *call, d decision) error {
	out := c.Out.Value
	if out == "" {
		return usagef("--out is required: see %s", helpFor(c.Command.Name))
	}
	ctx, stop := interruptible(c)
	defer stop()
	running, err := control.Ask(ctx, out)
	var result control.Result
	switch {
	case err == nil:
		fmt.Fprintf(c.App.ErrWriter, "asking process %d, which watches %s, to %s\n", running.PID, running.Source, d.name)
		result, err = d.ask(ctx, out)
	case errors.Is(err, control.ErrNoWatch):
		result, err = decideAlone(out, d, err)
	}
	if conflict, ok := errors.AsType[*control.ConflictError](err); ok {
		return &exit{exitRefused, conflict}
	}
	if err != nil {
		return err
	}
	return printResult(c, result)
}

// decideAlone executes a decision without a watch. unasked is why no watch was asked.
func decideAlone(out string, d decision, unasked error) (control.Result, error) {
	if info, err := os.Stat(filepath.Dir(control.Path(out))); err == nil {
		if of, ok := info.Sys().(*syscall.Stat_t); ok && int(of.Uid) != os.Geteuid() && os.Geteuid() == 0 {
			return control.Result{}, fmt.Errorf("%s belongs to the user with the ID %d, who could not read this decision: run this as that user", out, of.Uid)
		}
	}
	result, err := d.do(out)
	if _, locked := errors.AsType[*publish.LockedError](err); locked {
		err = fmt.Errorf("%w (asking it to %s failed: %w)", err, d.name, unasked)
	}
	return result, err
}

// writeDecisions writes a line for each decision about an output directory.
func writeDecisions(w io.Writer, out string, is control.Decisions) {
	if is.Paused != nil {
		fmt.Fprintf(w, "paused: %s; xdspub resume --out %s ends the pause\n", is.Paused, out)
	}
	if is.Trial != nil {
		fmt.Fprintf(w, "on trial: %s, published %s; %s\n", is.Trial, is.Trial.Decision, is.Trial.WaysOut(out))
	}
	if is.Pinned != nil {
		fmt.Fprintf(w, "pinned: %s; xdspub resume --out %s ends the pin\n", is.Pinned, out)
	}
}

// printResult prints the Result of a decision.
func printResult(c *call, r control.Result) error {
	if r.Outcome == control.Failed {
		return fmt.Errorf("the watch: %s", r.Message)
	}
	refused := r.Outcome == control.Refused || r.Outcome == control.Waiting
	if c.PrintFormat.Value == "json" {
		if err := writeJSON(c.App.Writer, r); err != nil {
			return err
		}
	} else {
		to := c.App.Writer
		if refused {
			to = c.App.ErrWriter
		}
		printList(c, r.Findings)
		if _, err := fmt.Fprintln(to, r.Message); err != nil {
			return err
		}
	}
	if refused {
		return &exit{status: exitRefused}
	}
	return nil
}

// operatorOf returns the user of this command and the host, as user@host. Under sudo, the user is
// the caller of sudo.
func operatorOf() string {
	name := "uid " + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if caller := os.Getenv("SUDO_USER"); caller != "" && os.Geteuid() == 0 {
		name = caller
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return name + "@" + host
}
