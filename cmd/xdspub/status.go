package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/envoy"
	"xdspub/internal/fspath"
	"xdspub/source/revision"
	"xdspub/watch/control"
	"xdspub/watch/status"
	"xdspub/xds/clients"
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

Without --envoy-admin it asks the Envoys that the running watch knows.

Exit status: 0 in sync, 1 not in sync, 2 wrong usage, 3 the status could not be determined.
It is in sync if every Envoy runs the published files, no change was interrupted, no published
file was changed by hand or is missing, no snapshot is held since Envoy rejected it, the watch
runs, answers and can publish its source tree, no certificate of that or of SRC is out of date, every
connected client of a running serve runs what it asks for, and SRC, if given, is published. If no watch has run since the last render,
none has to.`,
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
	format := c.String("format")
	switch {
	case format != "text" && format != "json":
		return usagef("invalid --format %q: %s", format, oneOf(textOrJSON, format))
	case c.NArg() > 1:
		return usagef("status takes one source tree at most: write --out DIR for the output directory")
	case c.Path("out") == "" && c.IsSet("serve"):
		return servedStatus(c, c.String("serve"), format)
	case c.IsSet("serve"):
		return usagef("--serve and --out are two questions: ask one at a time")
	}
	if name := setFlag(c, askedServeFlags()); name != "" {
		return usagef("--%s needs --serve ADDR: it says how that is asked", name)
	}
	v, err := statusSettings(c)
	if err != nil {
		return err
	}
	o := status.Options{Out: value(v, "out", c.Path), Registry: v.own.registry}
	if o.Out == "" {
		return usagef("--out is required: see %s", helpFor("status"))
	}
	targets, err := chosenTargets(v)
	if err != nil {
		return err
	}
	if targets != nil {
		return targetsStatus(v, targets, o, format)
	}
	if o.Admins, err = admins(v); err != nil {
		return err
	}
	ctx, stop := interruptible(c)
	defer stop()
	report, err := statusOf(ctx, o)
	if err != nil {
		return err
	}
	if source := c.Args().First(); source != "" {
		of, err := sourceOptions(v, source)
		if err != nil {
			return err
		}
		checked, err := check.Once(ctx, of)
		if err != nil {
			return err
		}
		report.compare(ctx, source, checked, value(v, "warnings-as-errors", c.Bool))
	}
	return printReport(c, format, report, report.InSync, writeStatus)
}

// statusSettings returns the settings of the source tree, or of the file of --config if there is no source
// tree.
func statusSettings(c *cli.Context) (v values, err error) {
	source := c.Args().First()
	switch name := c.Path("config"); {
	case source != "":
		return settings(c, source)
	case name != "":
		v, err = settings(c, filepath.Dir(name))
	default:
		v = values{c: c}
		v.own, err = readOwnTypes(v)
	}
	if err == nil && c.IsSet("target") && v.file[targetsSetting] == nil {
		err = targetOfNothing()
	}
	return v, err
}

// maxAsks is how often statusOf asks again because the watch has published meanwhile.
const maxAsks = 5

// statusOf asks what there is about an output directory. If o names no Envoys, it asks those that the running
// watch knows.
func statusOf(ctx context.Context, o status.Options) (*statusReport, error) {
	report := &statusReport{}
	for asks, asked := 1, ""; ; asks, asked = asks+1, report.Watch.Snapshot {
		report.ask(ctx, o.Out)
		of := o
		if w := report.Watch; w != nil && len(o.Admins) == 0 {
			for _, address := range w.Envoys {
				admin, err := envoy.NewAdmin(address)
				if err != nil {
					return nil, err
				}
				of.Admins = append(of.Admins, admin)
			}
		}
		var err error
		if report.Report, err = status.Of(ctx, of); err != nil {
			return nil, err
		}
		if !report.replaced() || report.Watch.Snapshot == asked || asks == maxAsks {
			report.InSync = report.InSync && report.watched()
			return report, nil
		}
	}
}

// replaced reports whether another snapshot is published than the one that the running watch has published last.
func (s *statusReport) replaced() bool {
	w := s.Watch
	return w != nil && w.Running == nil && s.Published != nil && w.Snapshot != "" && w.Snapshot != s.Published.Snapshot
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
	Watch      *control.Watch `json:"watch"`
	WatchState watchState     `json:"watch_state"`
	// WatchError is why a watch can't be asked; empty for watchRunning and watchNone.
	WatchError string `json:"watch_error"`
	// Clients are those of a running serve; nil where none runs, or it could not be asked.
	Clients []clients.Client `json:"clients"`
	// Source is the source tree; nil where none was given.
	Source *sourceStatus `json:"source"`

	options string // --out and --target of a render for a target; empty where there are none
}

// publishedTo returns what --out of a render is that publishes into the output directory.
func (s *statusReport) publishedTo() string { return cmp.Or(s.options, s.Out) }

// watchState says whether a watch publishes into an output directory.
type watchState string

const (
	watchRunning watchState = "running"
	// watchNone: no watch has left a trace since the last render.
	watchNone watchState = "none"
	// watchEnded: the last watch ended by itself, as SIGTERM makes it.
	watchEnded watchState = "ended"
	// watchKilled: the last watch was killed, or its machine was.
	watchKilled watchState = "killed"
	// watchSilent: a watch is there, and does not answer in time.
	watchSilent watchState = "silent"
	// watchUnknown: the watch can't be asked.
	watchUnknown watchState = "unknown"
)

// sourceStatus is a source tree beside what is published.
type sourceStatus struct {
	Path string `json:"path"`
	// Revision is the git commit of the tree, with "+dirty" if the tree differs from that commit; empty if
	// there is none.
	Revision string `json:"revision"`
	// Snapshot is the id of its snapshot; empty where it is invalid.
	Snapshot string `json:"snapshot"`
	// Published means that this is the published snapshot.
	Published bool      `json:"published"`
	Errors    int       `json:"errors"`
	Warnings  int       `json:"warnings"`
	Findings  diag.List `json:"findings"`
}

// ask asks the watch of an output directory.
func (s *statusReport) ask(ctx context.Context, out string) {
	s.Watch, s.WatchError, s.Clients = nil, "", nil
	w, err := control.Ask(ctx, out)
	if err == nil && w.Serves {
		s.Clients, err = control.Clients(ctx, out)
	}
	if err == nil {
		s.Watch, s.WatchState = &w, watchRunning
		return
	}
	_, ended := errors.AsType[*control.EndedError](err)
	switch {
	case ended:
		s.WatchState = watchEnded
	case errors.Is(err, control.ErrDied):
		s.WatchState = watchKilled
	case errors.Is(err, control.ErrNoWatch):
		s.WatchState = watchNone
		return
	case errors.Is(err, control.ErrSilent):
		s.WatchState = watchSilent
	default:
		s.WatchState = watchUnknown
	}
	s.WatchError = err.Error()
}

// watched reports whether the watch does what it is for. None has to run in a directory that render has
// published last.
func (s *statusReport) watched() bool {
	w := s.Watch
	if w == nil {
		return s.WatchState == watchNone
	}
	_, behind := countClients(s.Clients)
	return w.Refused == nil && w.Failed == "" && behind == 0 && !s.replaced() && len(w.Certificates.OutOfDate) == 0
}

// compare compares the snapshot of a checked source tree with the published one.
func (s *statusReport) compare(ctx context.Context, path string, checked *check.Result, warningsAsErrors bool) {
	s.Source = &sourceStatus{
		Path: path, Revision: revision.Of(ctx, path),
		Errors: checked.Summary.Errors, Warnings: checked.Summary.Warnings, Findings: append(diag.List{}, checked.Diagnostics...),
	}
	if !checked.Invalid(warningsAsErrors) {
		s.Source.Snapshot = checked.Snapshot.ID()
		s.Source.Published = s.Published != nil && s.Published.Snapshot == s.Source.Snapshot
	}
	s.InSync = s.InSync && s.Source.Published && len(s.certificates().OutOfDate) == 0
}

// certificates returns what the running watch has found about certificates. If none runs, it returns what the check of the
// published source tree has found.
func (s *statusReport) certificates() (c control.Certificates) {
	switch {
	case s.Watch != nil:
		return s.Watch.Certificates
	case s.Source != nil && s.Source.Published:
		c.OutOfDate, c.ExpireSoon = check.Certificates(s.Source.Findings)
	}
	return c
}

// saysInvalid reports whether the source tree of the running watch was checked for the report, and is invalid.
func (s *statusReport) saysInvalid() bool { return s.watchesSource() && s.Source.Snapshot == "" }

// watchesSource reports whether the running watch publishes the source tree of the report.
func (s *statusReport) watchesSource() bool {
	return s.Watch != nil && s.Source != nil && fspath.Resolve(s.Watch.Source) == fspath.Resolve(s.Source.Path)
}
