package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"xdspub/check"
	"xdspub/watch"
	"xdspub/watch/status"
)

// targetsReport is the status of all targets of a source tree.
type targetsReport struct {
	InSync  bool           `json:"in_sync"`
	Targets []targetReport `json:"targets"`
}

type targetReport struct {
	Target string `json:"target"`
	*status.Status
}

// targetsStatus prints the status of targets. o is for their output directories.
func targetsStatus(v values, targets []target, o status.Options, format string) error {
	if err := v.apart(targets); err != nil {
		return err
	}
	ctx, stop := interruptible(v.c)
	defer stop()
	source := v.c.Args().First()
	var checked *check.Result
	if source != "" {
		var err error
		if checked, err = checkedFor(ctx, v); err != nil {
			return err
		}
	}
	if _, err := os.Stat(value(v, "out", v.c.Path)); err == nil { // else the path may be wrong
		o.MayBeMissing = true
	}
	var ended targetsEnded
	all := targetsReport{InSync: true}
	for _, t := range targets {
		report, err := statusOfTarget(ctx, v.ofTarget(t), o)
		if ended.add(watch.Options{Target: t.name}, err) {
			continue
		}
		report.RenderOptions = fmt.Sprintf("%s --target %s", value(v, "out", v.c.Path), t.name)
		if source != "" {
			report.Compare(ctx, source, checked.For(t.name), value(v, "warnings-as-errors", v.c.Bool))
		}
		all.InSync = all.InSync && report.InSync
		all.Targets = append(all.Targets, targetReport{t.name, report})
	}
	if len(ended.errs) > 0 {
		all.InSync = false
	}
	err := printReport(v.c, format, all, all.InSync, writeTargets)
	if failed := ended.err(v.c.App.ErrWriter); failed != nil {
		return failed
	}
	return err
}

// checkedFor checks the source tree for targets.
func checkedFor(ctx context.Context, v values) (*check.Result, error) {
	source := v.c.Args().First()
	o, err := sourceOptions(v, source)
	if err != nil {
		return nil, err
	}
	if o.Targets, err = checkedTargets(v, source); err != nil {
		return nil, err
	}
	return check.Once(ctx, o)
}

func statusOfTarget(ctx context.Context, v values, o status.Options) (report *status.Status, err error) {
	o.Out = value(v, "out", v.c.Path)
	if o.Admins, err = admins(v); err != nil {
		return nil, err
	}
	return status.Ask(ctx, o)
}

// writeTargets prints the status of targets for a person.
func writeTargets(w io.Writer, all targetsReport, now time.Time) error {
	for _, t := range all.Targets {
		fmt.Fprintf(w, "target %s:\n", t.Target)
		if err := writeStatus(w, t.Status, now); err != nil {
			return err
		}
	}
	return nil
}
