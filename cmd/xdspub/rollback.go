package main

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/cmd/settings"
	"xdspub/render/publish"
	"xdspub/watch"
	"xdspub/watch/control"
)

func rollbackCommand() *cli.Command {
	return &cli.Command{
		Name:      "rollback",
		Usage:     "publish a snapshot of the history, and pin it",
		ArgsUsage: "[ID]",
		Description: `Publishes the snapshot of an entry of xdspub history; without ID, --at and --to-revision, the entry
before the published one. The snapshot is judged by the rules of today, and published as render
does. The watch then pins the snapshot: the source tree is read and checked, and waits until a
resource other than a secret changes, or until resume. After pause, only resume ends the pin.

A running watch or server rolls back with its own options. Options for rules, files and Envoys are
for a directory into which no watch publishes.

Examples:
  xdspub rollback --out /var/lib/xds --reason "incident 42"
  xdspub rollback --out /var/lib/xds --at "yesterday 14:00"
  xdspub rollback --out /var/lib/xds 3fa94c1b

Exit status: 0 rolled back, 1 the snapshot has errors today, Envoy rejected it, or there is no such
entry; 2 wrong usage; 3 could not run.`,
		Flags: options(settings.Rollback()),
		Action: action(func(c *call) error {
			asked, err := rollbackAsked(c)
			if err != nil {
				return err
			}
			return decide(c, decision{
				name: "roll back",
				ask: func(ctx context.Context, out string) (control.Result, error) {
					return control.AskRollback(ctx, out, asked)
				},
				do: publishing(c, func(ctx context.Context, o watch.Options) (control.Result, error) {
					return watch.Rollback(ctx, o, asked)
				}),
			})
		}),
	}
}

// publishing returns the decision.do of a command that publishes into the output directory.
func publishing(c *call, publish func(context.Context, watch.Options) (control.Result, error)) func(out string) (control.Result, error) {
	return func(out string) (control.Result, error) {
		o, err := rollbackOptions(c, out)
		if err != nil {
			return control.Result{}, err
		}
		ctx, stop := interruptible(c)
		defer stop()
		return publish(ctx, o)
	}
}

// rollbackAsked returns the request of a command line.
func rollbackAsked(c *call) (asked control.Rollback, err error) {
	asked = control.Rollback{
		By: operatorOf(), Reason: c.Reason.Value, Entry: c.Args().First(), Revision: c.ToRevision.Value, WithSecrets: c.WithSecrets.Value,
		AllowRemoval: c.AllowRemoval.Value, Flags: given(c),
	}
	delete(asked.Flags, "allow-removal") // which is for this rollback
	named := 0
	for _, is := range []bool{c.NArg() > 0, c.At.Given(), c.ToRevision.Given()} {
		if is {
			named++
		}
	}
	switch {
	case c.NArg() > 1:
		return asked, usagef("rollback takes one ID: write --out DIR for the output directory")
	case named > 1:
		return asked, usagef("ID, --at and --to-revision exclude each other: name the entry once")
	case c.At.Given():
		if asked.At, err = timeOf(c.At, time.Now()); err != nil {
			return asked, err
		}
	}
	return asked, cmp.Or(c.PrintFormat.Check(), c.Check(settings.Rollback()...))
}

// rollbackOptions returns the options for a directory into which no watch publishes. The record of the directory has
// the format of its files, and its path for Envoy.
func rollbackOptions(c *call, out string) (watch.Options, error) {
	v, err := c.withTypes()
	if name := c.Config.Value; name != "" {
		v, err = c.withFile(filepath.Dir(name))
	}
	if err != nil {
		return watch.Options{}, err
	}
	m, err := publish.ReadManifest(out)
	if err != nil {
		return watch.Options{}, err
	}
	s := *v.Settings
	s.Out.Value, s.Format.Value, s.EnvoyPath.Value = out, cmp.Or(m.Format, "json"), m.EnvoyPath
	v = v.with(&s)
	log, err := newLogger(v)
	if err != nil {
		return watch.Options{}, err
	}
	return controllerOptions(v, "", log)
}
