package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/cmd/settings"
	"xdspub/diag"
	"xdspub/doctor"
	"xdspub/doctor/machine"
	"xdspub/watch"
	"xdspub/watch/status"
)

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name:      "doctor",
		Usage:     "find what on this machine breaks Envoy or a publish",
		ArgsUsage: "[SRC]",
		Description: `Examines limits of inotify and descriptors, file systems, permissions as Envoy's user, the directories
that Envoy watches, its admin interface, version and clock, space on the disk, certificates, and what
killed processes have left. Each finding says what to do. doctor changes nothing without --fix and
--prune, and works beside a running watch.

SRC is the source tree, for its settings and its file system. Without --envoy-admin, doctor asks the
Envoys that the running watch knows. To see the processes of other users, run doctor as root.

Examples:
  xdspub doctor --out /var/lib/xds
  xdspub doctor --out /var/lib/xds --envoy-admin http://127.0.0.1:9901 config/
  xdspub doctor --out /var/lib/xds --envoy-user envoy --format json
  xdspub doctor --out /var/lib/xds --bundle bug.tar.gz config/

Exit status: 0 no errors, 1 errors, 2 wrong usage, 3 could not run, or --fix or --prune was refused.`,
		Flags:  options(settings.Doctor()),
		Action: action(doctorAction),
	}
}

func doctorAction(c *call) error {
	if err := c.PrintFormat.Check(); err != nil {
		return err
	}
	if c.NArg() > 1 {
		return usagef("doctor takes one source tree at most: write --out DIR for the output directory")
	}
	v, err := statusSettings(c)
	if err != nil {
		return err
	}
	if v.Out.Value == "" {
		return usagef("--out is required: see %s", helpFor("doctor"))
	}
	targets, err := chosenTargets(v)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(c)
	defer stop()
	if targets == nil {
		r, err := examine(ctx, v)
		if r == nil {
			return err
		}
		if wrong := bundle(ctx, v, doctorTargets{Targets: []doctorTarget{{"", r}}}); wrong != nil {
			return wrong
		}
		printed := printReport(c, r, !r.Findings.HasErrors(), func(w io.Writer, r *doctor.Report, _ time.Time) error { return writeDoctor(c, w, r) })
		return ended(printed, err)
	}
	return examineTargets(ctx, v, targets)
}

// ended returns the error of a command that has printed its result, and may also have failed.
func ended(printed, failed error) error {
	if failed != nil {
		return failed
	}
	return printed
}

// examine examines an output directory, and then fixes and prunes it. After an error of Fix or Prune, examine also
// returns the report.
func examine(ctx context.Context, v *call) (*doctor.Report, error) {
	o, err := doctorOptions(v)
	if err != nil {
		return nil, err
	}
	r, err := doctor.Examine(ctx, o)
	if err != nil || !v.Fix.Value && !v.Prune.Value {
		return r, err
	}
	if v.Fix.Value {
		err = r.Fix()
	}
	if err == nil && v.Prune.Value {
		err = r.Prune(ctx)
	}
	if len(r.Fixed)+len(r.Pruned) == 0 {
		return r, err
	}
	again, wrong := doctor.Examine(ctx, o) // what is left
	if wrong != nil {
		return r, ended(wrong, err)
	}
	again.Fixed, again.Pruned = r.Fixed, r.Pruned
	return again, err
}

// doctorOptions returns the options of an examination.
func doctorOptions(v *call) (doctor.Options, error) {
	o := doctor.Options{
		Status: status.Options{Out: v.Out.Value, Registry: v.Types.Registry, Disable: v.Disable.Value},
		Source: v.Args().First(), Polled: v.Poll.Value > 0, InotifyBudget: v.InotifyBudget.Value,
	}
	if name := v.EnvoyUser.Value; name != "" {
		user, err := machine.UserNamed(name)
		if err != nil {
			return o, v.EnvoyUser.Invalid(name, err.Error())
		}
		o.User = &user
	}
	var err error
	o.Status.Admins, err = admins(v)
	return o, err
}

// doctorTargets is the result for the targets of a source tree.
type doctorTargets struct {
	Targets []doctorTarget `json:"targets"`
}

type doctorTarget struct {
	Target string `json:"target"`
	*doctor.Report
}

// examineTargets examines the output directories of targets.
func examineTargets(ctx context.Context, v *call, targets []settings.Target) error {
	if err := checkApart(v, targets); err != nil {
		return err
	}
	var failed targetsEnded
	all := doctorTargets{Targets: []doctorTarget{}}
	for _, t := range targets {
		r, err := examine(ctx, v.with(v.OfTarget(t)))
		failed.add(watch.Options{Target: t.Name}, err)
		if r != nil {
			all.Targets = append(all.Targets, doctorTarget{t.Name, r})
		}
	}
	if err := bundle(ctx, v, all); err != nil {
		return err
	}
	well := !slices.ContainsFunc(all.Targets, func(t doctorTarget) bool { return t.Findings.HasErrors() })
	printed := printReport(v, all, well, func(w io.Writer, all doctorTargets, _ time.Time) error { return writeDoctors(v, w, all) })
	return ended(printed, failed.err(v.App.ErrWriter))
}

// bundle writes the file of --bundle, if given.
func bundle(ctx context.Context, v *call, all doctorTargets) error {
	if !v.Bundle.Given() {
		return nil
	}
	b := doctor.Bundle{Version: buildVersion().String()}
	for _, s := range v.Shown() {
		b.Settings = append(b.Settings, doctor.Setting{Name: s[0], Value: s[1]})
	}
	for _, t := range all.Targets {
		b.Add(ctx, t.Target, t.Report)
	}
	// A new file, so that a link at the path leads nowhere.
	f, err := os.OpenFile(v.Bundle.Value, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("--bundle: %w", err)
	}
	_, err = b.WriteTo(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("--bundle: %w", err)
	}
	fmt.Fprintf(v.App.ErrWriter, "xdspub: wrote %s: read it before you send it\n", v.Bundle.Value)
	return nil
}

// writeDoctors prints the reports of targets as text.
func writeDoctors(c *call, w io.Writer, all doctorTargets) error {
	for _, t := range all.Targets {
		fmt.Fprintf(w, "target %s:\n", t.Target)
		if err := writeDoctor(c, w, t.Report); err != nil {
			return err
		}
	}
	return nil
}

// writeDoctor prints a report as text.
func writeDoctor(c *call, w io.Writer, r *doctor.Report) error {
	for _, done := range []struct {
		verb  string
		names []string
	}{{"removed", r.Fixed}, {"pruned", r.Pruned}} {
		if len(done.names) > 0 {
			fmt.Fprintf(w, "%s: %s\n", done.verb, diag.Printable(diag.Few(done.names, mostOfAKind)))
		}
	}
	if err := diag.WriteText(w, r.Findings, diag.TextOptions{Color: colored(c, w)}); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, r.Summary)
	return err
}
