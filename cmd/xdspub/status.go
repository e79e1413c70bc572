package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/check"
	"xdspub/clients"
	"xdspub/control"
	"xdspub/diag"
	"xdspub/status"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "show what is published, and which of it each Envoy runs",
		ArgsUsage: "[SRC]",
		Description: `With SRC it also checks this source tree, and says whether that is what is published. Where its
settings have targets, it does so for each of them.

Examples:
  xdspub status --out /var/lib/xds
  xdspub status --out /var/lib/xds --envoy-admin http://127.0.0.1:9901 config/
  xdspub status --out /var/lib/xds --envoy-admin http://127.0.0.1:9901 --format json
  xdspub status --serve unix:/run/xds.sock
  xdspub status --serve xds.example:18000 --tls-ca ca.pem --tls-cert me.pem --tls-key me.key

Exit status: 0 in sync, 1 not in sync, 2 wrong usage, 3 the status could not be determined.
It is in sync if every Envoy runs the published files, no change was interrupted, no published
file was changed by hand or is missing, no snapshot is held since Envoy rejected it, the watch
was not killed, answers and can publish its source tree, every connected client of a running serve
runs what it asks for, and SRC, if given, is published.`,
		Flags: append(slices.Concat(sourceFlags(), askedServeFlags()), targetFlag(),
			&cli.PathFlag{Category: groupPublish, Name: "out", EnvVars: env("out"), Usage: "output `DIR` of render, watch or serve (required without --serve)"},
			envoyAdminFlag(),
			// No variable: XDSPUB_FORMAT is the format of published files.
			&cli.StringFlag{Category: groupPrint, Name: "format", Value: "text", Usage: "print the status as `text|json`"},
		),
		Action: statusAction,
	}
}

func statusAction(c *cli.Context) error {
	o := status.Options{Out: c.Path("out")}
	format := c.String("format")
	switch {
	case format != "text" && format != "json":
		return usagef("invalid --format %q: %s", format, oneOf(textOrJSON, format))
	case c.NArg() > 1:
		return usagef("status takes one source tree at most: write --out DIR for the output directory")
	case o.Out == "" && c.IsSet("serve"):
		return servedStatus(c, c.String("serve"), format)
	case c.IsSet("serve"):
		return usagef("--serve and --out are two questions: ask one at a time")
	case o.Out == "":
		return usagef("--out is required: see %s", helpFor("status"))
	}
	if name := setFlag(c, askedServeFlags()); name != "" {
		return usagef("--%s needs --serve ADDR: it says how that is asked", name)
	}
	own, err := readOwnTypes(values{c: c})
	if err != nil {
		return err
	}
	o.Registry = own.registry
	targets, v, err := statusTargets(c)
	if err != nil {
		return err
	}
	if targets != nil {
		return targetsStatus(v, targets, o, format)
	}
	if o.Admins, err = admins(values{c: c}); err != nil {
		return err
	}
	ctx, stop := interruptible(c)
	defer stop()
	report, err := statusOf(ctx, o)
	if err != nil {
		return err
	}
	if c.Args().Present() {
		v, of, err := settingsAndSource(c, c.Args().First())
		if err != nil {
			return err
		}
		checked, err := check.Once(ctx, of)
		if err != nil {
			return err
		}
		report.compare(of.Path, checked, value(v, "warnings-as-errors", c.Bool))
	}
	return printReport(c, format, report, report.InSync, writeStatus)
}

// statusOf asks what there is about an output directory.
func statusOf(ctx context.Context, o status.Options) (*statusReport, error) {
	found, err := status.Of(ctx, o)
	if err != nil {
		return nil, err
	}
	report := &statusReport{Report: found}
	report.ask(ctx)
	return report, nil
}

// printReport prints a report, as text by write. The exit status is whether all is well.
func printReport[R any](c *cli.Context, format string, report R, well bool, write func(io.Writer, R, time.Time) error) (err error) {
	if format == "json" {
		err = writeJSON(c.App.Writer, report)
	} else {
		err = write(c.App.Writer, report, time.Now())
	}
	if err == nil && !well {
		err = &exit{status: exitRefused}
	}
	return err
}

// statusReport is a Report with what a watch and a source tree say.
type statusReport struct {
	*status.Report
	// Watch is nil where none runs, or can't be asked.
	Watch *control.Watch `json:"watch"`
	// WatchError is why a watch can't be asked; empty where it can, and where none was started
	// or it has ended by itself.
	WatchError string `json:"watch_error"`
	// Clients are those of a running serve; nil where none runs, or it could not be asked.
	Clients []clients.Client `json:"clients"`
	// Source is the source tree; nil where none was given.
	Source *sourceStatus `json:"source"`

	options string // --out and --target of a render for a target; empty where there are none
}

// publishedTo returns what --out of a render is that publishes into the output directory.
func (s *statusReport) publishedTo() string { return cmp.Or(s.options, s.Out) }

// sourceStatus is a source tree beside what is published.
type sourceStatus struct {
	Path string `json:"path"`
	// Snapshot is the id of its snapshot; empty where it is invalid.
	Snapshot string `json:"snapshot"`
	// Published means that this is the published snapshot.
	Published bool      `json:"published"`
	Errors    int       `json:"errors"`
	Warnings  int       `json:"warnings"`
	Findings  diag.List `json:"findings"`
}

// ask asks the watch. One that was killed, or does not answer, is a fault.
func (s *statusReport) ask(ctx context.Context) {
	w, err := control.Ask(ctx, s.Out)
	if err == nil && w.Serves {
		s.Clients, err = control.Clients(ctx, s.Out)
	}
	switch {
	case errors.Is(err, control.ErrDied), errors.Is(err, control.ErrSilent):
		s.WatchError, s.InSync = err.Error(), false
	case errors.Is(err, control.ErrNoWatch):
	case err != nil:
		s.WatchError = err.Error()
	default:
		s.Watch = &w
		_, behind := countClients(s.Clients)
		s.InSync = s.InSync && w.Refused == nil && w.Failed == "" && behind == 0
	}
}

// compare compares the snapshot of a checked source tree with the published one.
func (s *statusReport) compare(path string, checked *check.Result, warningsAsErrors bool) {
	s.Source = &sourceStatus{Path: path, Errors: checked.Summary.Errors, Warnings: checked.Summary.Warnings, Findings: append(diag.List{}, checked.Diagnostics...)}
	if !checked.Invalid(warningsAsErrors) {
		s.Source.Snapshot = checked.Snapshot.ID()
		s.Source.Published = s.Published != nil && s.Published.Snapshot == s.Source.Snapshot
	}
	s.InSync = s.InSync && s.Source.Published
}
