package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/control"
	"xdspub/status"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "show what is published, and which of it each Envoy runs",
		Description: `Examples:
  xdspub status --out /var/lib/xds
  xdspub status --out /var/lib/xds --envoy-admin http://127.0.0.1:9901 --format json

Exit status: 0 in sync, 1 not in sync, 2 wrong usage, 3 the status could not be determined.
It is in sync if every Envoy runs the published files, no change was interrupted, no published
file was changed by hand or is missing, no snapshot is held since Envoy rejected it, and a
running watch can publish its source tree.`,
		Flags: []cli.Flag{
			&cli.PathFlag{Category: groupPublish, Name: "out", EnvVars: env("out"), Usage: "output `DIR` of render or watch (required)"},
			envoyAdminFlag(),
			// No variable: XDSPUB_FORMAT is the format of published files.
			&cli.StringFlag{Category: groupPrint, Name: "format", Value: "text", Usage: "print the status as `text|json`"},
		},
		Action: statusAction,
	}
}

func statusAction(c *cli.Context) error {
	o := status.Options{Out: c.Path("out")}
	format := c.String("format")
	switch {
	case c.NArg() > 0:
		return usagef("status takes no arguments: write --out DIR for the output directory")
	case o.Out == "":
		return usagef("--out is required: see %s", helpFor("status"))
	case format != "text" && format != "json":
		return usagef("invalid --format %q: use text or json", format)
	}
	var err error
	if o.Admins, err = admins(values{c: c}); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	found, err := status.Of(ctx, o)
	if err != nil {
		return err
	}
	report := &statusReport{Report: found}
	report.ask(ctx)
	if format == "json" {
		encoder := json.NewEncoder(c.App.Writer)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(report)
	} else {
		err = writeStatus(c.App.Writer, report, time.Now())
	}
	if err == nil && !report.InSync {
		err = &exit{status: exitRefused}
	}
	return err
}

// statusReport is a Report with what only a running watch knows.
type statusReport struct {
	*status.Report
	// Watch is nil where none runs, or can't be asked.
	Watch *control.Watch `json:"watch"`
	// WatchError is why one that runs can't be asked.
	WatchError string `json:"watch_error"`
}

// ask asks the running watch, if there is one.
func (s *statusReport) ask(ctx context.Context) {
	w, err := control.Ask(ctx, s.Out)
	switch {
	case errors.Is(err, control.ErrNoWatch):
	case err != nil:
		s.WatchError = err.Error()
	default:
		s.Watch = &w
		s.InSync = s.InSync && w.Refused == nil && w.Failed == ""
	}
}
