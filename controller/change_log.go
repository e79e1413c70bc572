package controller

import (
	"context"
	"log/slog"
	"reflect"

	"xdspub/check"
	"xdspub/diag"
)

// changeLog logs what a Watch does. It logs a state once, and again only after it changed.
type changeLog struct {
	log  *slog.Logger
	most int // findings at a time; 0 for all

	findings  diag.List // of the source tree
	failed    string    // the error of the last reconcile that could not run
	published string    // the id of the published snapshot
	held      string    // the id of the held snapshot
}

// forget makes findings and errors be logged once more.
func (l *changeLog) forget() { l.findings, l.failed = nil, "" }

// checked logs the findings of a source tree.
func (l *changeLog) checked(c *check.Result, invalid bool) {
	if reflect.DeepEqual(l.findings, c.Diagnostics) {
		return
	}
	had := l.findings.HasErrors()
	l.findings = c.Diagnostics
	l.say(c.Diagnostics)
	switch {
	case invalid:
		l.log.Error("refused, the last valid output stays", "errors", c.Summary.Errors, "warnings", c.Summary.Warnings, "published", l.published)
	case had:
		l.log.Info("the source tree is valid again")
	}
}

// outcome logs the outcome of a reconcile, but for Invalid: checked logs that.
func (l *changeLog) outcome(o Outcome, reason string) {
	switch o.Verdict {
	case Published:
		l.held = ""
		if written, removed := Files(o.Moved); written+removed > 0 || l.published != o.Snapshot {
			l.log.Info("snapshot is out", "id", o.Snapshot, "written", written, "removed", removed, "resources", o.Summary.Resources, "reason", reason)
		}
		l.published = o.Snapshot
	case Held:
		if l.held != o.Snapshot {
			l.log.Warn("the snapshot is held since Envoy refused it, the last valid output stays: change the source, or send SIGHUP to try again", "snapshot", o.Snapshot, "since", o.Refusal.Time)
			l.say(o.Findings)
		}
		l.held = o.Snapshot
	case RefusedByEnvoy:
		l.log.Error("Envoy refused the snapshot, "+o.AfterRefusal(), "snapshot", o.Snapshot, "step", o.Refusal.Step)
		l.say(o.Findings)
		l.held = o.Snapshot
	}
}

// failure logs why a reconcile could not run.
func (l *changeLog) failure(ctx context.Context, err error, reason string) {
	switch {
	case reason == starting && isUsage(err): // with which the watch ends
	case err == nil && l.failed != "":
		l.failed = ""
		l.log.Info("runs again", "reason", reason)
	case err == nil:
	case ctx.Err() != nil:
		l.log.Warn("stopped within a change, the next start goes on", "error", err)
	case err.Error() != l.failed:
		l.failed = err.Error()
		l.log.Error("could not run, the last valid output stays", "error", err, "reason", reason)
	}
}

// say logs findings.
func (l *changeLog) say(list diag.List) {
	most, left := list.Most(l.most)
	for _, d := range most {
		attrs := []any{"code", d.Code, "place", d.Position.String()}
		if d.Resource.Name != "" {
			attrs = append(attrs, "resource", d.Resource.Name)
		}
		for _, r := range d.Related {
			attrs = append(attrs, "related", r.Position.String()+": "+r.Message)
		}
		if d.Help != "" {
			attrs = append(attrs, "help", d.Help)
		}
		l.log.Log(context.Background(), level(d.Severity), d.Message, attrs...)
	}
	if left > 0 {
		l.log.Warn("more findings were not logged, --max-findings 0 logs them all", "findings", left)
	}
}

func level(s diag.Severity) slog.Level {
	switch s {
	case diag.Error:
		return slog.LevelError
	case diag.Warning:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}
