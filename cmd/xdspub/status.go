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
	"xdspub/pipeline"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "say what is published, and what runs in each Envoy",
		Description: `Exit status: 0 all is in sync, 1 it is not, 2 wrong usage, 3 it can't be told. Beside
files that Envoys do not run it is also not in sync where a change was interrupted, a
published file was changed by hand or is missing, a snapshot is held since Envoy refused
it, or a running watch can't publish its source tree.`,
		Flags: []cli.Flag{
			&cli.PathFlag{Name: "out", EnvVars: env("out"), Usage: "output `DIR` of render or watch"},
			envoyAdminFlag(),
			// No variable: XDSPUB_FORMAT is the format of published files.
			&cli.StringFlag{Name: "format", Value: "text", Usage: "print it as `text|json`"},
		},
		Action: statusAction,
	}
}

func statusAction(c *cli.Context) error {
	o := pipeline.StatusOptions{Out: c.Path("out")}
	format := c.String("format")
	switch {
	case c.NArg() > 0:
		return usagef("status wants no arguments, the output directory is --out")
	case o.Out == "":
		return usagef("--out is required: see %s", helpFor("status"))
	case format != "text" && format != "json":
		return usagef("--format %q is none of text, json", format)
	}
	var err error
	if o.Admins, err = admins(c.StringSlice("envoy-admin")); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	found, err := pipeline.Status(ctx, o)
	if err != nil {
		return err
	}
	report := &status{Report: found}
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

// status is a Report with what only a running watch knows.
type status struct {
	*pipeline.Report
	// Watch is nil where none runs, or can't be asked.
	Watch *control.Watch `json:"watch"`
	// WatchError is why one that runs can't be asked.
	WatchError string `json:"watch_error"`
}

// ask asks the running watch, if there is one.
func (s *status) ask(ctx context.Context) {
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
