package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"xdspub/check"
	"xdspub/cmd/settings"
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

// targetsStatus prints the status of the targets. o has the options that all targets share.
func targetsStatus(v *call, targets []settings.Target, o status.Options) error {
	if err := checkApart(v, targets); err != nil {
		return err
	}
	ctx, stop := interruptible(v)
	defer stop()
	source := v.Args().First()
	var checked *check.Result
	if source != "" {
		var err error
		if checked, err = checkedFor(ctx, v); err != nil {
			return err
		}
	}
	if _, err := os.Stat(v.Out.Value); err == nil { // else the path may be wrong
		o.MayBeMissing = true
	}
	var ended targetsEnded
	all := targetsReport{InSync: true}
	for _, t := range targets {
		report, err := statusOfTarget(ctx, v.with(v.OfTarget(t)), o)
		if ended.add(watch.Options{Target: t.Name}, err) {
			continue
		}
		report.RenderOptions = fmt.Sprintf("%s --target %s", v.Out.Value, t.Name)
		if source != "" {
			report.Compare(ctx, source, checked.For(t.Name), v.WarningsAsErrors.Value)
		}
		all.InSync = all.InSync && report.InSync
		all.Targets = append(all.Targets, targetReport{t.Name, report})
	}
	if len(ended.errs) > 0 {
		all.InSync = false
	}
	err := printReport(v, all, all.InSync, writeTargets)
	if failed := ended.err(v.App.ErrWriter); failed != nil {
		return failed
	}
	return err
}

// checkedFor checks the source tree for the targets that v chooses.
func checkedFor(ctx context.Context, v *call) (*check.Result, error) {
	source := v.Args().First()
	o, err := sourceOptions(v, source)
	if err != nil {
		return nil, err
	}
	if o.Targets, err = checkedTargets(v, source); err != nil {
		return nil, err
	}
	return check.Once(ctx, o)
}

func statusOfTarget(ctx context.Context, v *call, o status.Options) (report *status.Status, err error) {
	o.Out = v.Out.Value
	if o.Admins, err = admins(v); err != nil {
		return nil, err
	}
	return status.Ask(ctx, o)
}

// writeTargets prints the status of targets as text.
func writeTargets(w io.Writer, all targetsReport, now time.Time) error {
	for _, t := range all.Targets {
		fmt.Fprintf(w, "target %s:\n", t.Target)
		if err := writeStatus(w, t.Status, now); err != nil {
			return err
		}
	}
	return nil
}
