package status

import (
	"cmp"
	"context"
	"errors"
	"time"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/envoy"
	"xdspub/internal/fspath"
	"xdspub/source/revision"
	"xdspub/watch/control"
	"xdspub/watch/freeze"
	"xdspub/xds/clients"
)

// Status is a Report together with the state of a watch and of a source tree.
type Status struct {
	*Report
	// Watch is the state of the running watch; nil if no watch runs or the watch can't be asked.
	Watch      *control.Watch `json:"watch"`
	WatchState WatchState     `json:"watch_state"`
	// WatchError is why the watch can't be asked; empty for WatchRunning and WatchNone.
	WatchError string `json:"watch_error"`
	// Frozen is the freeze in force, from the running watch. Without a watch, Frozen comes from Options.Freeze. nil
	// without a freeze.
	Frozen *freeze.State `json:"frozen"`
	// Certificates come from the running watch. Without a watch, they come from the source tree if it is
	// published, and otherwise from the published files.
	Certificates control.Certificates `json:"certificates"`
	// Clients are the clients of a running serve; nil if no serve runs or it can't be asked.
	Clients []clients.Client `json:"clients"`
	// Source is the state of the source tree; nil if no source tree was given.
	Source *SourceStatus `json:"source"`

	// RenderOptions are the --out and --target of a render for a target; empty without targets.
	RenderOptions string `json:"-"`

	inSyncButForDates bool // InSync if no certificate is out of date
}

// PublishedTo returns the arguments after --out of a render into the output directory.
func (s *Status) PublishedTo() string { return cmp.Or(s.RenderOptions, s.Out) }

// WatchState says whether a watch publishes into an output directory.
type WatchState string

const (
	// WatchRunning: a watch answers.
	WatchRunning WatchState = "running"
	// WatchNone: no watch has run since the last render.
	WatchNone WatchState = "none"
	// WatchEnded: the last watch ended by itself, for example after SIGTERM.
	WatchEnded WatchState = "ended"
	// WatchKilled: the last watch was killed, or its machine went down.
	WatchKilled WatchState = "killed"
	// WatchSilent: a watch runs and does not answer in time.
	WatchSilent WatchState = "silent"
	// WatchUnknown: the watch can't be asked.
	WatchUnknown WatchState = "unknown"
)

// SourceStatus compares a source tree with the published snapshot.
type SourceStatus struct {
	Path string `json:"path"`
	// Revision is the git commit of the tree, with "+dirty" if the tree differs from the commit; empty
	// without git.
	Revision string `json:"revision"`
	// Snapshot is the id of the tree's snapshot; empty for an invalid tree.
	Snapshot string `json:"snapshot"`
	// Published means that the tree's snapshot is published.
	Published bool      `json:"published"`
	Errors    int       `json:"errors"`
	Warnings  int       `json:"warnings"`
	Findings  diag.List `json:"findings"`
}

// maxAsks is the largest number of times that Ask asks while the watch publishes.
const maxAsks = 5

// Ask returns the Status of an output directory. If o names no Envoys, Ask uses the Envoys of the running
// watch.
func Ask(ctx context.Context, o Options) (*Status, error) {
	report := &Status{}
	for asks, asked := 1, ""; ; asks, asked = asks+1, report.Watch.Snapshot {
		report.ask(ctx, o.Out)
		if report.Frozen = o.Freeze.At(time.Now()); report.Watch != nil {
			report.Frozen = report.Watch.Frozen
		}
		of := o
		if report.Watch == nil {
			of.dates = check.Rules{Disable: o.Disable}.Dates
		}
		var err error
		if len(o.Admins) == 0 {
			if of.Admins, err = report.AskedByWatch(); err != nil {
				return nil, err
			}
		}
		if report.Report, err = Of(ctx, of); err != nil {
			return nil, err
		}
		report.serves()
		if !report.Replaced() || report.Watch.Snapshot == asked || asks == maxAsks {
			report.inSyncButForDates = report.InSync && report.watched()
			report.judgeDates()
			return report, nil
		}
	}
}

// serves takes the published snapshot from the running server of a --state, because the history may lack it.
func (s *Status) serves() {
	w := s.Watch
	if !s.State || w == nil || w.Snapshot == "" || s.Published != nil && s.Published.Snapshot == w.Snapshot {
		return
	}
	s.Published = &Publication{Snapshot: w.Snapshot, Time: w.SnapshotSince, Resources: map[string]int{}}
	if w.Refused == nil && w.Waits == nil && w.Checked.Variants != nil { // the source tree, as read last, is published
		s.Published.Revision, s.Published.Resources = w.Revision, w.Checked.Variants
	}
	if s.Published.Time.IsZero() {
		s.Published.Time = w.Since
	}
	s.setInSync()
}

// AskedByWatch returns the admin interfaces that the running watch asks.
func (s *Status) AskedByWatch() (list []*envoy.Admin, err error) {
	if s.Watch == nil {
		return nil, nil
	}
	for _, address := range s.Watch.Envoys {
		admin, err := envoy.NewAdmin(address)
		if err != nil {
			return nil, err
		}
		list = append(list, admin)
	}
	return list, nil
}

// Replaced reports whether the published snapshot differs from the last publish of the running watch.
func (s *Status) Replaced() bool {
	w := s.Watch
	return w != nil && !s.State && w.Running == nil && s.Published != nil && w.Snapshot != "" && w.Snapshot != s.Published.Snapshot
}

// ask asks the watch of an output directory.
func (s *Status) ask(ctx context.Context, out string) {
	s.Watch, s.WatchError, s.Clients = nil, "", nil
	w, err := control.Ask(ctx, out)
	if err == nil && w.Serves {
		s.Clients, err = control.Clients(ctx, out)
	}
	if err == nil {
		s.Watch, s.WatchState = &w, WatchRunning
		return
	}
	_, ended := errors.AsType[*control.EndedError](err)
	switch {
	case ended:
		s.WatchState = WatchEnded
	case errors.Is(err, control.ErrDied):
		s.WatchState = WatchKilled
	case errors.Is(err, control.ErrNoWatch):
		s.WatchState = WatchNone
		return
	case errors.Is(err, control.ErrSilent):
		s.WatchState = WatchSilent
	default:
		s.WatchState = WatchUnknown
	}
	s.WatchError = err.Error()
}

// watched reports whether the watch publishes and its clients are in sync. A directory published by render
// needs no watch.
func (s *Status) watched() bool {
	w := s.Watch
	if w == nil {
		return s.WatchState == WatchNone && !s.State
	}
	return w.Refused == nil && w.Waits == nil && w.Failed == "" && w.Upstream.Fault() == "" && w.Store.Fault() == "" &&
		w.Rollout() == nil && clients.Fault(s.Clients) == "" && !s.quorumMissed() && !s.Replaced()
}

// quorumMissed reports whether the quorum of clients of a running serve has not acknowledged the published snapshot.
// If Envoys read files, quorumMissed returns false: a Status asks these Envoys themselves.
func (s *Status) quorumMissed() bool {
	return s.Watch != nil && s.Watch.Serves && s.Watch.Unconfirmed != ""
}

// waitsForTrial reports whether a change of the source tree waits because another snapshot awaits confirmation.
func (s *Status) waitsForTrial() bool {
	return s.Watch != nil && s.Watch.Waits != nil && s.Watch.Trial != nil
}

// Compare compares the snapshot of a checked source tree with the published one.
func (s *Status) Compare(ctx context.Context, path string, checked *check.Result, warningsAsErrors bool) {
	s.Source = &SourceStatus{
		Path: path, Revision: revision.Of(ctx, path),
		Errors: checked.Summary.Errors, Warnings: checked.Summary.Warnings, Findings: append(diag.List{}, checked.Diagnostics...),
	}
	if !checked.Invalid(warningsAsErrors) {
		s.Source.Snapshot = checked.Snapshot.ID()
		if all := checked.Variants.ID(); s.State && s.Published != nil && s.Published.Snapshot == all {
			s.Source.Snapshot = all
		}
		s.Source.Published = s.Published != nil && s.Published.Snapshot == s.Source.Snapshot
	}
	s.inSyncButForDates = s.inSyncButForDates && s.Source.Published
	s.judgeDates()
}

// judgeDates sets Certificates, and InSync accordingly.
func (s *Status) judgeDates() {
	c := &s.Certificates
	switch {
	case s.Watch != nil:
		*c = s.Watch.Certificates
	case s.Source != nil && s.Source.Published:
		c.OutOfDate, c.ExpireSoon = check.Certificates(s.Source.Findings)
	default:
		c.OutOfDate, c.ExpireSoon = check.Certificates(s.dates)
	}
	s.InSync = s.inSyncButForDates && len(c.OutOfDate) == 0
}

// SaysInvalid reports whether the source tree of the running watch was checked for this Status and is
// invalid.
func (s *Status) SaysInvalid() bool { return s.watchesSource() && s.Source.Snapshot == "" }

// watchesSource reports whether the running watch publishes the source tree of this Status.
func (s *Status) watchesSource() bool {
	return s.Watch != nil && s.Source != nil && fspath.Resolve(s.Watch.Source) == fspath.Resolve(s.Source.Path)
}
