package event

import (
	"log/slog"
	"time"
)

// StepConfirmed means that the quorum of the Envoys that answer runs the files of a step.
type StepConfirmed struct {
	Step      string // the step
	Answering int    // how many Envoys answer
	Envoys    int    // how many there are
}

func (StepConfirmed) kind() Kind {
	return Kind{"step-confirmed", slog.LevelInfo, "Envoy confirmed a step"}
}

// StepUnconfirmed means that within --ack-timeout no Envoy answered, or the quorum neither ran nor rejected the files
// of a step. The change goes on.
//
// Do: the neighbouring lines name the Envoy and the file. If that Envoy runs, check that --envoy-admin reaches
// it.
type StepUnconfirmed struct {
	Step      string // the step
	Answering int    // how many Envoys answer
	Envoys    int    // how many there are
}

func (StepUnconfirmed) kind() Kind {
	return Kind{"step-unconfirmed", slog.LevelWarn, "no Envoy confirmed a step; the change continues"}
}

// StepRefused means that so many Envoys rejected the files of a step that the quorum can't be
// met. The change is rolled back, unless step-retried follows.
type StepRefused struct {
	Step      string // the step
	Answering int    // how many Envoys answer
	Envoys    int    // how many there are
}

func (StepRefused) kind() Kind {
	return Kind{"step-refused", slog.LevelWarn, "Envoy rejected a step"}
}

// StepRetried means that Envoys rejected the files of a step because they have not fetched the code of
// a filter yet: a remote dynamic module with nack_on_cache_miss, or remote Wasm code with
// nack_on_code_cache_miss. The files of the step are published once more after the pause. If Envoys
// still reject the step after --ack-timeout, the change is rolled back.
//
// Do: nothing, if step-confirmed follows. Otherwise look whether Envoy reaches the server of the code.
type StepRetried struct {
	Step  string        // the step
	Pause time.Duration // until the files are published once more
	Error error         // Envoy's reason
}

func (StepRetried) kind() Kind {
	return Kind{"step-retried", slog.LevelWarn, "Envoy has not fetched the code of a filter yet; the step is published once more"}
}

// FileNotApplied means that an Envoy subscribes to a published file and does not run it. Within a change, the
// event is a warning, and step-refused or step-unconfirmed follows. At any other time, the event is an error:
// the Envoy rejected the file at its start or while no watch was running, or the Envoy has not read the file.
//
// Do: see error for the reason; Envoy's own log has more. Remove the cause, then send SIGHUP: the watch publishes
// the file once more, and Envoy reads the file again.
type FileNotApplied struct {
	WithinChange    bool   `event:"-"`
	Envoy           string // the admin interface
	File            string // below the output directory
	State           string // REJECTED, STALE (neither rejected nor applied) or STATS_EXCLUDED, as in xdspub status
	ExpectedVersion string // of the published file
	RunningVersion  string // version of the Envoy's file; empty for none
	Error           string `event:"optional"` // the Envoy's reason
}

func (e FileNotApplied) kind() Kind {
	level := slog.LevelError
	if e.WithinChange {
		level = slog.LevelWarn
	}
	return Kind{"file-not-applied", level, "Envoy does not run a published file"}
}

// EnvoyInSync means that an Envoy runs all published files that it subscribes to. The event is logged once for
// each Envoy after the start of a watch, after each start of the Envoy, and after file-not-applied.
type EnvoyInSync struct {
	Envoy string // the admin interface
	Files int    // the number of files that it subscribes to
}

func (EnvoyInSync) kind() Kind {
	return Kind{"envoy-in-sync", slog.LevelInfo, "Envoy runs all published files"}
}

// EnvoyRestarted means that another process of an Envoy answers than before. envoy-in-sync or
// file-not-applied follows once it has started.
type EnvoyRestarted struct {
	Envoy string // the admin interface
}

func (EnvoyRestarted) kind() Kind {
	return Kind{"envoy-restarted", slog.LevelInfo, "Envoy was restarted"}
}

// EnvoyUnknown means that the answer of an admin interface does not tell what the Envoy runs: the answer is
// not Envoy's, lacks statistics, or belongs to an Envoy that reads another directory. Each publish fails until
// this is corrected.
//
// Do: correct --envoy-admin, or the stats_matcher of that Envoy's bootstrap.
type EnvoyUnknown struct {
	Envoy string // the admin interface
	Error error  // the cause
}

func (EnvoyUnknown) kind() Kind {
	return Kind{"envoy-unknown", slog.LevelError, "an admin interface does not say what its Envoy runs"}
}

// EnvoyUnreachable means that an Envoy does not answer any more, or has not answered yet. A
// change does not wait for it.
//
// Do: start the Envoy, or correct --envoy-admin.
type EnvoyUnreachable struct {
	Envoy string // the admin interface
	Error error  // the cause
}

func (EnvoyUnreachable) kind() Kind {
	return Kind{"envoy-unreachable", slog.LevelWarn, "Envoy does not answer"}
}

// EnvoyReachable means that an Envoy answers again, after envoy-unreachable.
type EnvoyReachable struct {
	Envoy string // the admin interface
}

func (EnvoyReachable) kind() Kind {
	return Kind{"envoy-reachable", slog.LevelInfo, "Envoy answers again"}
}

// ClustersWarming means that new clusters of an Envoy are not warm within --warm-timeout. Requests to cold
// clusters fail.
//
// Do: check their endpoints, DNS names and health checks.
type ClustersWarming struct {
	Envoy    string   // the admin interface
	Clusters []string // names of the clusters
}

func (ClustersWarming) kind() Kind {
	return Kind{"clusters-warming", slog.LevelWarn, "clusters are not warm yet; requests to cold clusters fail"}
}

// ReasonMissing means that the reason why an Envoy rejected a file may be missing: the admin interface of the
// Envoy, or a file of --envoy-log, could not be read.
//
// Do: remove the cause in error; Envoy's log has the reason.
type ReasonMissing struct {
	Envoy string `event:"optional"` // the admin interface; absent if a file of --envoy-log could not be read
	Error error  // the cause
}

func (ReasonMissing) kind() Kind {
	return Kind{"reason-missing", slog.LevelWarn, "the reason for Envoy's rejection can't be read"}
}
