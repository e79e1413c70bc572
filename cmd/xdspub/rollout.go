package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/cmd/settings"
	"xdspub/diag"
	"xdspub/store"
	"xdspub/watch/control"
)

func rolloutCommand() *cli.Command {
	words := []string{"status", "pause", "resume", "abort"}
	return &cli.Command{
		Name:  "rollout",
		Usage: "show, pause or take back the rollout of a change to a fleet",
		Subcommands: []*cli.Command{
			rolloutStatusCommand(), rolloutPauseCommand(), rolloutResumeCommand(), rolloutAbortCommand(),
		},
		Action: action(func(c *call) error {
			if c.Args().Present() {
				return usagef("rollout can't %q: %s", diag.Printable(c.Args().First()), settings.OneOf(words, c.Args().First()))
			}
			return usagef("rollout needs status, pause, resume or abort: see %s", helpFor("rollout"))
		}),
	}
}

func rolloutStatusCommand() *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "show which machines have a change, and what the next wave waits for",
		Description: `With the setting rollout, a change goes to the machines of a fleet wave by wave.

Example:
  xdspub rollout status --store etcd://etcd.example:2379/fleet --store-ca ca.pem

Exit status: 0 no rollout, 1 a rollout is under way, paused or taken back; 2 wrong usage, 3 the
store can't be asked.`,
		Flags: options(settings.RolloutStatus()),
		Action: action(func(c *call) error {
			o, err := rolloutStore(c)
			if err != nil {
				return err
			}
			return showRollouts(c, o, false)
		}),
	}
}

func rolloutPauseCommand() *cli.Command {
	return rolloutDecision("pause", "open no wave, and begin no rollout, until resume", `Machines keep what they have, and a machine that refuses the change still takes it back. A pause
outlasts the writer. A pause or a freeze of the writer itself has the same effect.

Example:
  xdspub rollout pause --store etcd://etcd.example:2379/fleet --store-ca ca.pem --reason "incident 42"

Exit status: 0 paused, 1 paused already, 2 wrong usage, 3 could not run.`, store.PauseRollouts)
}

func rolloutResumeCommand() *cli.Command {
	return rolloutDecision("resume", "end a pause, or begin again what was taken back", `Without a pause, resume begins the rollout again that was taken back last, with the first wave.

Example:
  xdspub rollout resume --store etcd://etcd.example:2379/fleet --store-ca ca.pem

Exit status: 0 resumed, 1 nothing to resume, 2 wrong usage, 3 could not run.`, store.ResumeRollouts)
}

func rolloutAbortCommand() *cli.Command {
	return rolloutDecision("abort", "take the change of the running rollout back", `All machines get the snapshot before the rollout. The change gets no other rollout until the source
tree changes, or until rollout resume. The writer keeps its own files: xdspub rollback is for these.

Example:
  xdspub rollout abort --store etcd://etcd.example:2379/fleet --store-ca ca.pem --reason "errors in checkout"

Exit status: 0 taken back, 1 no rollout runs, 2 wrong usage, 3 could not run.`, store.AbortRollout)
}

// rolloutDecision returns a command by which an operator decides about the rollouts of a target.
func rolloutDecision(
	name, usage, description string, decide func(context.Context, store.Options, string, store.Decision) error,
) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, Description: description, Flags: options(settings.DecideRollout()),
		Action: action(func(c *call) error {
			o, err := rolloutStore(c)
			if err != nil {
				return err
			}
			ctx, stop := interruptible(c)
			defer stop()
			err = decide(ctx, o, c.StoreTarget.Value, store.Decision{By: operatorOf(), Reason: c.Reason.Value})
			if nothing, ok := errors.AsType[*store.DecidedError](err); ok {
				return &exit{exitRefused, nothing}
			}
			if err != nil {
				return fmt.Errorf("%s the rollout: %w", name, err)
			}
			return showRollouts(c, o, true)
		}),
	}
}

// rolloutStore returns how to connect to --store, and checks the usage of a command about rollouts.
func rolloutStore(c *call) (store.Options, error) {
	switch {
	case c.NArg() > 0:
		return store.Options{}, usagef("rollout %s takes no arguments: write --store etcd://HOST:PORT/PREFIX", c.Command.Name)
	case c.Store.Value == "":
		return store.Options{}, usagef("--store is required: see %s", helpFor("rollout "+c.Command.Name))
	}
	if err := c.PrintFormat.Check(); err != nil {
		return store.Options{}, err
	}
	return storeOptions(c, c.Store.Value)
}

// showRollouts prints the rollouts of the targets of --store. After a decision, the exit status is 0 whatever rollouts
// run.
func showRollouts(c *call, o store.Options, decided bool) error {
	report, err := askStore(c, o)
	if err != nil {
		return err
	}
	list, done := []rolloutReport{}, true
	for _, t := range report.Targets {
		done = done && t.Rollout == nil && t.Paused == nil
		list = append(list, rolloutReport{t.Target, t.Rollout, t.Wave, t.Paused, t.Writer})
	}
	return printReport(c, list, done || decided, writeRollouts)
}

// rolloutReport is the rollout of a target, as rollout status prints it as JSON.
type rolloutReport struct {
	Target  string           `json:"target,omitempty"`
	Rollout *control.Rollout `json:"rollout,omitempty"`
	Wave    store.Tally      `json:"wave,omitzero"`
	Paused  *store.Order     `json:"paused,omitempty"`
	Writer  string           `json:"writer,omitempty"`
}

func writeRollouts(w io.Writer, list []rolloutReport, now time.Time) error {
	p := &statusPrinter{now: now}
	for _, r := range list {
		if r.Target != "" {
			p.printf("target %s: ", r.Target)
		}
		if p.rollout(r); r.Writer == "" {
			p.printf("  writer: none; rollouts go on when xdspub watch --store runs\n")
		}
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

// rollout prints the rollout of a target.
func (p *statusPrinter) rollout(r rolloutReport) {
	if r.Rollout == nil {
		p.printf("no rollout: all machines get the same snapshot\n")
	} else {
		p.printf("%s\n", r.Rollout)
	}
	if r.Wave.Machines > 0 && r.Rollout != nil && r.Rollout.State != control.TakenBack {
		p.printf("  %d of %s of the wave acknowledged", r.Wave.Acknowledged, diag.Count(r.Wave.Machines, "machine"))
		if r.Wave.Silent > 0 {
			p.printf(", %d silent", r.Wave.Silent)
		}
		p.printf("\n")
	}
	if r.Paused != nil {
		p.printf("  rollouts are paused %s; xdspub rollout resume ends the pause\n", r.Paused)
	}
}
