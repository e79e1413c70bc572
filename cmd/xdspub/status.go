package main

import (
	"io"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/check"
	"xdspub/cmd/settings"
	"xdspub/watch/status"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "show what is published, and which of it each Envoy runs",
		ArgsUsage: "[SRC]",
		Description: `With SRC, status also checks this source tree, and says whether the tree is published. If the settings
of the tree have targets, status does so for each target.

Examples:
  xdspub status --out /var/lib/xds
  xdspub status --out /var/lib/xds --envoy-admin http://127.0.0.1:9901 config/
  xdspub status --out /var/lib/xds --envoy-admin http://127.0.0.1:9901 --format json
  xdspub status --serve unix:/run/xds.sock
  xdspub status --serve xds.example:18000 --tls-ca ca.pem --tls-cert me.pem --tls-key me.key
  xdspub status --store etcd://etcd.example:2379/fleet --store-ca ca.pem

Without --envoy-admin, status asks the Envoys that the running watch knows.

Exit status: 0 in sync, 1 not in sync, 2 wrong usage, 3 the status could not be determined.
In sync means:
  - every Envoy runs the published files;
  - no change was interrupted, and no snapshot is held because Envoy rejected it;
  - no published file was changed by hand or is missing, and no published certificate has expired;
  - the watch runs, answers and can publish its source tree, unless render published last;
  - every connected client of a running serve runs the resources that it asks for;
  - every machine of the fleet of --store has published the head, and the store has a writer;
  - no rollout to a fleet is under way, and none was taken back;
  - SRC, if given, is published.`,
		Flags:  options(settings.Status()),
		Action: action(statusAction),
	}
}

func statusAction(c *call) error {
	if err := c.PrintFormat.Check(); err != nil {
		return err
	}
	switch {
	case c.NArg() > 1:
		return usagef("status takes one source tree at most: write --out DIR for the output directory")
	case c.Out.Value == "" && c.Serve.Given():
		return servedStatus(c, c.Serve.Value)
	case c.Out.Value == "" && c.Store.Given() && !c.Serve.Given():
		return storeStatus(c)
	case c.Store.Given():
		return usagef("--store, --serve and --out can't be combined: run status once for each")
	case c.Serve.Given():
		return usagef("--serve and --out can't be combined: run status once for each")
	}
	if name := settings.FirstGiven(c.Settings, settings.AskedServe()); name != "" {
		return usagef("--%s needs --serve ADDR: it is about the connection to that server", name)
	}
	v, err := statusSettings(c)
	if err != nil {
		return err
	}
	o := status.Options{Out: v.Out.Value, Registry: v.Types.Registry, Disable: v.Disable.Value, Freeze: v.Freeze.Value}
	if o.Out == "" {
		return usagef("--out is required: see %s", helpFor("status"))
	}
	targets, err := chosenTargets(v)
	if err != nil {
		return err
	}
	if targets != nil {
		return targetsStatus(v, targets, o)
	}
	if o.Admins, err = admins(v); err != nil {
		return err
	}
	ctx, stop := interruptible(c)
	defer stop()
	report, err := status.Ask(ctx, o)
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
		report.Compare(ctx, source, checked, v.WarningsAsErrors.Value)
	}
	return printReport(c, report, report.InSync, writeStatus)
}

// statusSettings returns the settings of c with the settings file for the source tree. Without a source tree,
// statusSettings reads the file of --config, if given.
func statusSettings(c *call) (v *call, err error) {
	source := c.Args().First()
	switch name := c.Config.Value; {
	case source != "":
		return c.withFile(source)
	case name != "":
		v, err = c.withFile(filepath.Dir(name))
	default:
		v, err = c.withTypes()
	}
	if err == nil && c.Target.Given() && !v.Targets.InFile() {
		err = targetWithoutSource()
	}
	return v, err
}

// printReport prints a report as JSON, or by write as text. If well is false, printReport returns an exit with
// exitRefused.
func printReport[R any](c *call, report R, well bool, write func(io.Writer, R, time.Time) error) (err error) {
	if c.PrintFormat.Value == "json" {
		err = writeJSON(c.App.Writer, report)
	} else {
		err = write(c.App.Writer, report, time.Now())
	}
	if err == nil && !well {
		err = &exit{status: exitRefused}
	}
	return err
}
