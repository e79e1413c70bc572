package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/cmd/settings"
	"xdspub/internal/parallel"
	"xdspub/watch"
	"xdspub/watch/control"
)

func confirmCommand() *cli.Command {
	return &cli.Command{
		Name:      "confirm",
		Usage:     "keep a change of --confirm-within",
		ArgsUsage: "ID",
		Description: `With --confirm-within, a change is undone unless somebody confirms it in time. ID is the
id of the published snapshot, as the log and status have it; its beginning suffices, at least 4
characters. A change of the source tree that has waited meanwhile is then published.

Example:
  xdspub confirm --out /var/lib/xds v3fa94c1b

Exit status: 0 confirmed, 1 too late, or no such snapshot awaits confirmation; 2 wrong usage,
3 could not run.`,
		Flags: options(settings.ConfirmTrial()),
		Action: action(func(c *call) error {
			if c.NArg() != 1 {
				return usagef("confirm takes the ID of a snapshot: xdspub status --out DIR has it")
			}
			if err := c.Check(settings.ConfirmTrial()...); err != nil {
				return err
			}
			asked := control.Confirm{By: operatorOf(), Reason: c.Reason.Value, Snapshot: c.Args().First()}
			return decide(c, decision{
				name: "confirm",
				ask: func(ctx context.Context, out string) (control.Result, error) {
					return control.AskConfirm(ctx, out, asked)
				},
				do: func(out string) (control.Result, error) { return watch.Confirm(out, asked) },
			})
		}),
	}
}

func cancelCommand() *cli.Command {
	return &cli.Command{
		Name:      "cancel",
		Usage:     "undo a change of --confirm-within now",
		ArgsUsage: "[ID]",
		Description: `Publishes the snapshot before the change, with its secrets, and pins it as rollback does: the source
tree waits until it changes, or until resume. A running watch or server undoes with its own options.
Options for rules, files and Envoys are for a directory into which no watch publishes.

Example:
  xdspub cancel --out /var/lib/xds --reason "errors in checkout"

Exit status: 0 undone, 1 nothing awaits confirmation, or the snapshot before can't be published;
2 wrong usage, 3 could not run.`,
		Flags: options(settings.CancelTrial()),
		Action: action(func(c *call) error {
			if c.NArg() > 1 {
				return usagef("cancel takes one ID: write --out DIR for the output directory")
			}
			if err := cmp.Or(c.PrintFormat.Check(), c.Check(settings.CancelTrial()...)); err != nil {
				return err
			}
			asked := control.Cancel{By: operatorOf(), Reason: c.Reason.Value, Snapshot: c.Args().First(), Flags: given(c)}
			return decide(c, decision{
				name: "undo the change",
				ask: func(ctx context.Context, out string) (control.Result, error) {
					return control.AskCancel(ctx, out, asked)
				},
				do: publishing(c, func(ctx context.Context, o watch.Options) (control.Result, error) { return watch.Cancel(ctx, o, asked) }),
			})
		}),
	}
}

func extendCommand() *cli.Command {
	return &cli.Command{
		Name:      "extend",
		Usage:     "give more time to confirm a change of --confirm-within",
		ArgsUsage: "TIME [ID]",
		Description: `The change is then undone TIME from now, which must not be earlier than before.

Example:
  xdspub extend --out /var/lib/xds 30m

Exit status: 0 extended, 1 too late, or nothing awaits confirmation; 2 wrong usage, 3 could not run.`,
		Flags: options(settings.ExtendTrial()),
		Action: action(func(c *call) error {
			if c.NArg() < 1 || c.NArg() > 2 {
				return usagef("extend takes a TIME such as 30m, and may have an ID: see %s", helpFor("extend"))
			}
			d, err := time.ParseDuration(c.Args().First())
			if err != nil || d <= 0 {
				return usagef("%q is no time: write a time above 0s, such as 30m", c.Args().First())
			}
			if err := c.Check(settings.ExtendTrial()...); err != nil {
				return err
			}
			asked := control.Extend{By: operatorOf(), Reason: c.Reason.Value, Snapshot: c.Args().Get(1), For: d.Seconds()}
			return decide(c, decision{
				name: "wait longer",
				ask: func(ctx context.Context, out string) (control.Result, error) {
					return control.AskExtend(ctx, out, asked)
				},
				do: func(out string) (control.Result, error) { return watch.Extend(out, asked) },
			})
		}),
	}
}

// undoOverdue undoes the trial of an earlier process if its time is over. With such a trial the error says that the
// source tree is not published.
func (r *rendering) undoOverdue(ctx context.Context, c *call) error {
	result, err := r.UndoOverdue(ctx)
	if err != nil {
		return err
	}
	if result.Outcome != "" {
		printList(c, result.Findings)
		fmt.Fprintln(c.App.ErrWriter, ofTarget(r.o, result.Message))
	}
	return nil
}

// untilGone returns a context that ends when the operator of a render with --confirm-within has gone: with SIGINT,
// SIGTERM, or SIGHUP of a lost terminal. After a second signal the record of the trial stays.
func untilGone(c *call, all []watch.Options) (ctx context.Context, stop func()) {
	if all[0].ConfirmWithin == 0 {
		return c.Context, func() {}
	}
	return untilSignal(c, syscall.SIGHUP)
}

// awaitTrials waits for the ends of the trials that this render has begun, or until ctx ends. Each process may confirm,
// because no lock is held meanwhile.
func awaitTrials(ctx context.Context, c *call, list []*rendering, ended *targetsEnded) {
	var waiting parallel.Group
	results, errs := make([]control.Result, len(list)), make([]error, len(list))
	who := control.Decision{By: operatorOf(), Reason: c.Command.Name + " was interrupted before somebody confirmed the change"}
	for i, r := range list {
		if r.trial != nil {
			waiting.Go(func() { results[i], errs[i] = watch.Await(ctx, r.o, *r.trial, who) })
		}
	}
	waiting.Wait()
	for i, r := range list {
		if r.trial != nil {
			ended.add(r.o, r.trialEnded(c, results[i], errs[i]))
		}
	}
}

// sayTrial says who confirms, and who undoes.
func (r *rendering) sayTrial(c *call) {
	if r.trial == nil || c.Quiet.Value {
		return
	}
	fmt.Fprintln(c.App.Writer, ofTarget(r.o, fmt.Sprintf("%s; this command waits for that, and otherwise undoes the snapshot, also if it is interrupted",
		r.trial.WaysOut(r.o.Out))))
}

// trialEnded prints how a trial has ended.
func (r *rendering) trialEnded(c *call, result control.Result, err error) error {
	if err != nil {
		return err
	}
	if result.Outcome == control.Confirmed {
		if !c.Quiet.Value {
			fmt.Fprintln(c.App.Writer, ofTarget(r.o, result.Message))
		}
		return nil
	}
	printList(c, result.Findings)
	return &exit{exitRefused, errors.New(ofTarget(r.o, result.Message))}
}
