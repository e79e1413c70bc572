package watch

import (
	"context"
	"reflect"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/event"
	"xdspub/xds"
)

// changeLog logs what a Watch does. It logs a state once, and again only after it changed.
type changeLog struct {
	log  *event.Log
	most int // findings at a time; 0 for all
	// alone says that the watch has no targets: it ends with what keeps it from beginning.
	alone bool

	findings  diag.List     // of the source tree
	failed    string        // the error of the last reconcile that could not run
	published string        // the id of the published snapshot
	served    string        // the id of what the Server gets of it
	refused   string        // the id of the snapshot that Envoy refused; empty once another one is published
	snapshot  *xds.Snapshot // the one that this watch published last; nil where it has not
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
	l.say(c.Own())
	switch {
	case invalid:
		l.log.Write(event.SourceInvalid{Errors: c.Summary.Errors, Warnings: c.Summary.Warnings, Published: l.published})
	case had:
		l.log.Write(event.SourceValid{})
	}
}

// outcome logs the outcome of a reconcile of a snapshot, but for Invalid: checked logs that.
func (l *changeLog) outcome(o Outcome, s *xds.Snapshot, reason string) {
	switch o.Verdict {
	case Published:
		l.publishedNow(o, s, reason)
	case Held:
		if l.refused != o.Snapshot {
			l.log.Write(event.Held{Snapshot: o.Snapshot, Since: o.Refusal.Time})
			l.say(o.Findings)
		}
		l.refused = o.Snapshot
	case RefusedByEnvoy:
		l.refusal(o)
		l.say(o.Findings)
	}
}

// publishedNow logs that a snapshot is published. One that was published before is worth a line
// where somebody asked.
func (l *changeLog) publishedNow(o Outcome, s *xds.Snapshot, reason string) {
	written, removed := Files(o.Moved)
	switch {
	case written+removed > 0 || l.published != o.Snapshot || l.snapshot == nil || l.served != o.Served:
		e := event.Published{Snapshot: o.Snapshot, Written: written, Removed: removed, Resources: o.Summary.Resources, Reason: reason, Revision: o.Revision}
		if l.snapshot != nil {
			if d := s.Diff(l.snapshot); !d.Empty() || l.served == o.Served { // else what other clients get has changed
				e.ResourcesAdded, e.ResourcesChanged, e.ResourcesRemoved = new(len(d.Added)), new(len(d.Changed)), new(len(d.Removed))
			}
		}
		l.log.Write(e)
	case reason == hangup || reason == retrying:
		l.log.Write(event.Unchanged{Snapshot: o.Snapshot, Reason: reason, Revision: o.Revision})
	}
	if l.refused != "" {
		l.log.Write(event.RefusalEnded{Snapshot: o.Snapshot, Refused: l.refused})
	}
	l.published, l.served, l.refused, l.snapshot = o.Snapshot, o.Served, "", s
}

// refusal logs that Envoy refused a snapshot, and what is published now.
func (l *changeLog) refusal(o Outcome) {
	switch {
	case !o.Restored:
		l.log.Write(event.RollbackFailed{Snapshot: o.Snapshot, Step: o.Refusal.Step})
	case o.kept():
		l.log.Write(event.RefusedKept{Snapshot: o.Snapshot, Step: o.Refusal.Step})
		l.published = o.Snapshot
		return // it is not held
	default:
		l.log.Write(event.RolledBack{Snapshot: o.Snapshot, Step: o.Refusal.Step, Restored: l.published})
	}
	l.refused = o.Snapshot
}

// failure logs why a reconcile could not run.
func (l *changeLog) failure(ctx context.Context, err error, reason string) {
	switch {
	case l.alone && reason == starting && isUsage(err): // with which the watch ends
	case err == nil && l.failed != "":
		l.failed = ""
		l.log.Write(event.Recovered{Reason: reason})
	case err == nil:
	case ctx.Err() != nil:
		l.log.Write(event.Interrupted{Error: err})
	case err.Error() != l.failed:
		l.failed = err.Error()
		l.log.Write(event.Failed{Error: err, Reason: reason})
	}
}

// say logs findings.
func (l *changeLog) say(list diag.List) {
	most, left := list.Most(l.most)
	for _, d := range most {
		l.log.Write(event.FindingOf(d))
	}
	if left > 0 {
		l.log.Write(event.FindingsOmitted{Findings: left})
	}
}
