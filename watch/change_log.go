package watch

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"time"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/diff"
	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/watch/control"
	"xdspub/xds"
)

// changeLog logs the progress of a Watch. changeLog logs a state once, and again only after a change.
type changeLog struct {
	log  *event.Log
	most int // largest number of findings to log at a time; 0 for no limit
	// alone means that the watch has no targets: an error at the start ends the watch.
	alone        bool
	whileRefused []string // Options.WhileRefused
	// about returns the author and the subject of a git commit. If about is nil, events have neither.
	about func(ctx context.Context, revision string) (author, subject string)

	findings  diag.List     // of the source tree, as last logged
	invalid   bool          // the last logged tree is invalid
	again     bool          // log the next error, even if it is the last logged one
	failed    string        // the error of the last reconcile that could not run
	published string        // the id of the published snapshot
	served    string        // the id of the snapshot that the Server serves
	refused   string        // the id of the snapshot that Envoy refused; empty after the next publish
	waits     string        // why no part of a refused source tree is published; empty after the next publish
	snapshot  *xds.Snapshot // the last snapshot that this watch published; nil before the first
	bound     *xds.Snapshot // that snapshot as Envoy gets it; nil without files
}

// forget makes changeLog log findings and errors once more. changeLog still logs the end of the last logged error.
func (l *changeLog) forget() { l.findings, l.again = nil, true }

// checked logs the findings of a source tree, and whether the tree has become valid or is invalid. checked logs
// nothing if the findings are the last logged ones.
func (l *changeLog) checked(c *check.Result, invalid bool) {
	had := l.invalid
	if reflect.DeepEqual(l.findings, c.Diagnostics) && had == invalid {
		return
	}
	l.findings, l.invalid = c.Diagnostics, invalid
	l.say(c.Own())
	switch {
	case invalid:
		e := event.SourceInvalid{Errors: c.Summary.Errors, Warnings: c.Summary.Warnings, Published: l.published}
		e.WhileRefused = append(e.WhileRefused, l.whileRefused...) // nil if there are none
		l.log.Write(e)
	case had:
		l.log.Write(event.SourceValid{})
	}
}

// outcome logs the outcome of a reconcile, except Invalid, which checked logs.
func (l *changeLog) outcome(ctx context.Context, o Outcome, p *pass) {
	switch o.Verdict {
	case Published:
		l.publishedNow(ctx, o, p)
	case Held:
		known := l.refused == o.Snapshot || l.refused == o.Refusal.Snapshot
		if !known || asked(p.reason) {
			l.log.Write(event.Held{Snapshot: o.Snapshot, Since: o.Refusal.Time})
			l.say(o.Findings)
		}
		if !known {
			l.refused = o.Snapshot
		}
	case RefusedByEnvoy:
		l.refusal(o)
		l.say(o.Findings)
	}
}

// asked reports whether somebody waits for the outcome of a reconcile: after SIGHUP, or a request of an operator.
func asked(reason string) bool {
	return reason == hangup || reason == retrying || reason == resuming || reason == rollingBack || reason == approving ||
		reason == confirming
}

// publishedNow logs that a snapshot is published. If the snapshot was published before and no file has moved,
// publishedNow logs it only on SIGHUP or retry-held.
func (l *changeLog) publishedNow(ctx context.Context, o Outcome, p *pass) {
	s, reason := p.publishes.Snapshot, p.reason
	written, removed := Files(o.Moved)
	switch {
	case written+removed > 0 || l.published != o.Snapshot || l.snapshot == nil || l.served != o.Served:
		e := event.Published{Snapshot: o.Snapshot, Written: written, Removed: removed, Resources: o.Summary.Resources, Reason: reason, Revision: o.Revision}
		if l.snapshot != nil {
			if d := s.Diff(l.snapshot); !d.Empty() || l.served == o.Served { // else only other variants changed
				e.ResourcesAdded, e.ResourcesChanged, e.ResourcesRemoved = new(len(d.Added)), new(len(d.Changed)), new(len(d.Removed))
				e.NamesAdded, e.NamesChanged, e.NamesRemoved = names(d.Added), names(d.Changed), names(d.Removed)
				e.OnEnvoy = l.effects(s, p.bound)
			}
		}
		if l.about != nil && o.Revision != "" {
			e.Author, e.Subject = l.about(ctx, o.Revision)
		}
		e.ReadSeconds, e.PlanSeconds = seconds(p.read), seconds(p.planned)
		e.PublishSeconds, e.ServeSeconds = seconds(o.FilesTook), seconds(o.ClientsTook)
		l.log.Write(e)
	case asked(reason):
		l.log.Write(event.Unchanged{Snapshot: o.Snapshot, Reason: reason, Revision: o.Revision})
	}
	if l.refused != "" {
		l.log.Write(event.RefusalEnded{Snapshot: o.Snapshot, Refused: l.refused})
	}
	l.published, l.served, l.refused, l.waits, l.snapshot, l.bound = o.Snapshot, o.Served, "", "", s, p.bound
}

// effects returns the effects on a running Envoy of a change to a Snapshot. is is the Snapshot as Envoy gets it from
// files; nil without files. effects compares the published files, if the files before are known, and otherwise the
// resources for clients.
func (l *changeLog) effects(snapshot, is *xds.Snapshot) (e event.OnEnvoy) {
	was := l.bound
	if was == nil || is == nil {
		was, is = l.snapshot, snapshot
	}
	d := diff.CompareEffects(was, is)
	n := d.Counts()
	e.ListenersDrained, e.FilterChainsDrained = n[diff.ListenerDrains], n[diff.FilterChainDrains]
	e.ClustersReplaced, e.ClustersRemoved, e.RoutesMoved = n[diff.ClusterReplaced], n[diff.ClusterRemoved], n[diff.RouteMoves]
	e.EndpointsAdded, e.EndpointsRemoved, e.EndpointsWeighted = n[diff.EndpointAdded], n[diff.EndpointRemoved], n[diff.EndpointWeight]
	e.SecretsRotated, e.RuntimeChanged = n[diff.SecretRotates], n[diff.RuntimeChanges]
	for _, effect := range d.Effects {
		if effect.Kind.Disturbs() && len(e.Effects) < mostNames {
			e.Effects = append(e.Effects, effect.Text)
		}
	}
	return e
}

// part logs that a part of a refused source tree is published, or why it waits.
func (l *changeLog) part(p *control.Part, done Part, since time.Time, reason string) {
	waits := cmp.Or(p.Waits, p.OwnersWait)
	if waits != "" && (waits != l.waits || asked(reason)) {
		l.log.Write(event.PartWaits{WhileRefused: append([]string(nil), p.WhileRefused...), RefusedSince: since, Cause: waits})
		l.say(done.Outcome.Findings)
	}
	l.waits = waits
	if done.Outcome.Verdict == Published {
		l.partPublished(p, done, since, reason)
	}
}

// partPublished logs a published part.
func (l *changeLog) partPublished(p *control.Part, done Part, since time.Time, reason string) {
	o := done.Outcome
	e := event.PartPublished{
		Snapshot: o.Snapshot, RefusedSince: since, Reason: reason,
		PublishSeconds: seconds(o.FilesTook), ServeSeconds: seconds(o.ClientsTook),
	}
	e.Written, e.Removed = Files(o.Moved)
	e.WhileRefused = append(e.WhileRefused, p.WhileRefused...) // nil if there are none
	for _, h := range p.Held[:min(len(p.Held), mostNames)] {
		e.Held = append(e.Held, diag.Printable(h.Owner))
		if e.HeldSince.IsZero() || h.Since.Before(e.HeldSince) {
			e.HeldSince = h.Since
		}
	}
	if l.snapshot != nil {
		d := done.Snapshot.Diff(l.snapshot)
		e.ResourcesChanged, e.NamesChanged = new(len(d.Changed)), names(d.Changed)
		if p.Held != nil { // otherwise, no names come and go
			e.ResourcesAdded, e.ResourcesRemoved = new(len(d.Added)), new(len(d.Removed))
			e.NamesAdded, e.NamesRemoved = names(d.Added), names(d.Removed)
		}
		e.OnEnvoy = l.effects(done.Snapshot, done.Bound)
	}
	l.log.Write(e)
	l.published, l.served, l.snapshot, l.bound = o.Snapshot, o.Served, done.Snapshot, done.Bound
}

// mostNames is the number of resources, and of effects, that an event names.
const mostNames = 20

// names returns the first resources as texts such as CDS/web.
func names(list []*xds.Resource) (names []string) {
	for _, r := range list[:min(len(list), mostNames)] {
		names = append(names, diag.Printable(r.Type.API+"/"+r.Name))
	}
	return names
}

// seconds returns a duration in seconds, to the microsecond.
func seconds(d time.Duration) float64 { return d.Round(time.Microsecond).Seconds() }

// refusal logs that Envoy refused a snapshot, and which snapshot is published now.
func (l *changeLog) refusal(o Outcome) {
	switch {
	case !o.Restored:
		l.log.Write(event.RollbackFailed{Snapshot: o.Snapshot, Step: o.Refusal.Step})
	case o.kept():
		l.log.Write(event.RefusedKept{Snapshot: o.Snapshot, Step: o.Refusal.Step})
		l.published = o.Snapshot
		return // the snapshot is not held
	default:
		l.log.Write(event.RolledBack{Snapshot: o.Snapshot, Step: o.Refusal.Step, Restored: l.published})
	}
	l.refused = o.Snapshot
}

// failure logs the error that prevented a reconcile, or the recovery from it.
func (l *changeLog) failure(ctx context.Context, err error, reason string) {
	again := l.again
	l.again = false
	switch {
	case l.alone && reason == starting && isUsage(err): // the watch ends with this error
	case err == nil && l.failed != "":
		l.failed = ""
		l.log.Write(event.Recovered{Reason: reason})
	case err == nil:
	case ctx.Err() != nil:
		l.log.Write(event.Interrupted{Error: err})
	case err.Error() != l.failed || again:
		l.failed = err.Error()
		if e, ok := errors.AsType[*crash.Error](err); ok {
			l.log.Write(event.InternalError{Error: e, Stack: e.Stack, Reason: reason})
		} else {
			l.log.Write(event.Failed{Error: err, Reason: reason})
		}
	}
}

// say logs the first most findings, and the number of further ones.
func (l *changeLog) say(list diag.List) {
	most, left := list.Most(l.most)
	for _, d := range most {
		l.log.Write(event.FindingOf(d))
	}
	if left > 0 {
		l.log.Write(event.FindingsOmitted{Findings: left})
	}
}
