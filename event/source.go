package event

import (
	"log/slog"
	"time"

	"xdspub/diag"
)

// Finding means that the source tree or a published file has a fault or, for the code refused-by-envoy, that
// an Envoy refused a published file. The level is the finding's severity, the message names the fault. Each
// finding is logged once, until the findings of the tree change.
//
// Do: correct the source at place. `xdspub explain CODE` says more.
type Finding struct {
	Level    slog.Level `event:"-"`
	Message  string     `event:"-"`
	Code     string     // the code, as xdspub rules lists it
	Place    string     // FILE, FILE:LINE or FILE:LINE:COLUMN
	Resource string     `event:"optional"` // the name of the resource
	Related  []string   `event:"optional"` // related places, each with a note
	Help     string     `event:"optional"` // what would be right
}

func (f Finding) kind() Kind { return Kind{"finding", f.Level, f.Message} }

// FindingOf returns the event of a finding.
func FindingOf(d diag.Diagnostic) Finding {
	f := Finding{Level: slog.LevelInfo, Message: d.Message, Code: d.Code, Place: d.Position.String(), Resource: d.Resource.Name, Help: d.Help}
	switch d.Severity {
	case diag.Error:
		f.Level = slog.LevelError
	case diag.Warning:
		f.Level = slog.LevelWarn
	}
	for _, r := range d.Related {
		f.Related = append(f.Related, r.Position.String()+": "+r.Message)
	}
	return f
}

// FindingsOmitted means that the tree has more findings than --max-findings.
//
// Do: correct the logged findings, or start the watch with --max-findings 0, which logs all.
type FindingsOmitted struct {
	Findings int // how many were not logged
}

func (FindingsOmitted) kind() Kind {
	return Kind{"findings-omitted", slog.LevelWarn, "the log omits further findings; --max-findings 0 logs them all"}
}

// SourceInvalid means that the source tree has errors, or warnings with --warnings-as-errors, and is not
// published. The last valid snapshot stays published.
//
// Do: correct the findings above the event.
type SourceInvalid struct {
	Errors, Warnings int      // findings of this severity in the tree
	Published        string   `event:"optional"` // the id of the published snapshot
	WhileRefused     []string `event:"optional"` // --while-refused: changes of these types are published still
}

func (SourceInvalid) kind() Kind {
	return Kind{"source-invalid", slog.LevelError, "the source tree is invalid; the last valid snapshot stays published"}
}

// SourceValid means that the source tree has no errors any more, after source-invalid.
type SourceValid struct{}

func (SourceValid) kind() Kind {
	return Kind{"source-valid", slog.LevelInfo, "the source tree is valid again"}
}

// Unchanged means that the watch read the whole source tree and the output directory, because SIGHUP or another
// command asked for it, and had nothing to publish.
type Unchanged struct {
	Snapshot string // the id of the published snapshot
	Reason   string // SIGHUP or retry-held
	Revision string `event:"optional"` // the git commit of the source tree, with +dirty if the tree differs from that commit
}

func (Unchanged) kind() Kind {
	return Kind{"unchanged", slog.LevelInfo, "read the source tree; nothing has changed"}
}

// Failed means that a reconcile or a trim met an error, such as a full disk or an unreadable directory. The
// last valid snapshot stays published. The event is logged again if the error changes.
//
// Do: remove the cause in error. Every change and every rescan tries again.
type Failed struct {
	Error  error  // the cause
	Reason string // of the reconcile: start, change, rescan, SIGHUP, retry-held, trim or end
}

func (Failed) kind() Kind {
	return Kind{"failed", slog.LevelError, "could not read or publish the source tree; the last valid snapshot stays published"}
}

// Recovered means that the error of failed is gone.
type Recovered struct {
	Reason string // of the reconcile that had no error
}

func (Recovered) kind() Kind {
	return Kind{"recovered", slog.LevelInfo, "the source tree can be read and published again"}
}

// PathChanged means that the watch has seen a change in the source tree. The log has this event with
// --log-level debug.
type PathChanged struct {
	Path string // the changed path, absolute
	Op   string // the kind of change that the system reported: CREATE, WRITE, REMOVE, RENAME, CHMOD, POLL, TURNED
}

func (PathChanged) kind() Kind {
	return Kind{"path-changed", slog.LevelDebug, "a path of the source tree has changed"}
}

// GitLockStale means that a git work tree has had an index.lock for more than 30 s, or one lock after another
// for more than 2 minutes. The watch no longer waits, and reads the tree.
//
// Do: remove the file if no git command runs. A killed git command has left the file behind.
type GitLockStale struct {
	File  string    // the lock
	Since time.Time // when the file was created
}

func (GitLockStale) kind() Kind {
	return Kind{"git-lock-stale", slog.LevelWarn, "a lock of git is old, and the watch no longer waits for it; remove the lock if no git command runs"}
}

// EventsDropped means that the system has dropped events of the source tree. The watch reads the whole tree, so
// that no change is lost.
//
// Do: raise the sysctl fs.inotify.max_queued_events if the event comes often.
type EventsDropped struct{}

func (EventsDropped) kind() Kind {
	return Kind{
		"events-dropped", slog.LevelWarn,
		"the system dropped events, so the watch reads the whole tree; raise the sysctl fs.inotify.max_queued_events if this comes often",
	}
}

// WatchPartial means that the system reports no events of a part of the source tree. Each rescan reads this
// part, and asks for events again.
//
// Do: remove the cause in error.
type WatchPartial struct {
	Error  error         // the cause
	Rescan time.Duration // the time between two rescans
}

func (WatchPartial) kind() Kind {
	return Kind{"watch-partial", slog.LevelWarn, "the watch gets no events of some folders; the next rescan tries again"}
}

// WatchPolling means that the system has too few watches for the source tree. The watch polls the
// whole tree until a rescan gets all watches.
//
// Do: raise the limit that error names.
type WatchPolling struct {
	Error  error         // the cause
	Rescan time.Duration // the time between two rescans
	Poll   time.Duration // the time between two polls
}

func (WatchPolling) kind() Kind {
	return Kind{"watch-polling", slog.LevelWarn, "the system has too few watches, so the watch polls the tree; the next rescan tries again"}
}

// WatchComplete means that the system reports events of the whole source tree again, after watch-partial or
// watch-polling.
type WatchComplete struct {
	Root string // the source tree, absolute
}

func (WatchComplete) kind() Kind {
	return Kind{"watch-complete", slog.LevelInfo, "the watch gets events of all folders again"}
}

// UpstreamConnected means that a server of the control plane has sent all resources. xdspub follows the server from now
// on.
type UpstreamConnected struct {
	Server string // the address of the server
}

func (UpstreamConnected) kind() Kind {
	return Kind{"upstream-connected", slog.LevelInfo, "following the control plane"}
}

// UpstreamLost means that the stream to the control plane has ended. The last valid snapshot stays published, and
// xdspub tries all servers again and again.
//
// Do: look at the control plane. Until a server answers, no resource changes or expires.
type UpstreamLost struct {
	Server string // the address of the server
	Error  error  // why the stream has ended
}

func (UpstreamLost) kind() Kind {
	return Kind{"upstream-lost", slog.LevelWarn, "the control plane is gone; the last valid snapshot stays published"}
}

// UpstreamRefused means that xdspub has sent the control plane a NACK of a response.
//
// Do: correct the resources in the control plane. The log has the findings, too.
type UpstreamRefused struct {
	Type  string // the type of the response, such as CDS
	Error error  // the message of the NACK
}

func (UpstreamRefused) kind() Kind {
	return Kind{"upstream-refused", slog.LevelWarn, "the control plane has got a NACK"}
}

// UpstreamIgnored means that the control plane sends resources that nobody asked for. xdspub drops these
// resources, and logs the event once for each type and stream.
//
// Do: correct the control plane, or the resource that should subscribe to the names.
type UpstreamIgnored struct {
	Type      string   // the type of the resources, such as EDS
	Resources int      // how many
	Names     []string // the first names
}

func (UpstreamIgnored) kind() Kind {
	return Kind{"upstream-ignored", slog.LevelWarn, "the control plane sends resources that nobody asked for"}
}

// UpstreamOnDemand means that a resource has a config source by which Envoy itself asks a server: for names on demand,
// or because the config source names another server. xdspub does not ask for these names. Envoy gets them only while
// this server answers.
type UpstreamOnDemand struct {
	Resource string // the resource, such as LDS/web
	Path     string // of the config source
}

func (UpstreamOnDemand) kind() Kind {
	return Kind{"upstream-on-demand", slog.LevelInfo, "Envoy itself requests names from a server; xdspub does not ask for these names"}
}
