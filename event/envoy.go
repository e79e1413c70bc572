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

// StepUnconfirmed means that the quorum neither ran the files of a step nor rejected them within
// --ack-timeout, or that no Envoy answered. The change goes on.
//
// Do: the lines around it say which Envoy and which file. If that Envoy runs, look whether
// --envoy-admin reaches it.
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

// FileNotApplied means that an Envoy does not run a published file to which it is subscribed.
// Within a change it is a warning, which step-refused or step-unconfirmed follows up. At any
// other time it is an error: the Envoy read the file at its own start, or while no watch was
// running, and rejected it, or it has not read it.
//
// Do: mend what error says; Envoy's own log says more. Then send SIGHUP: the file is published
// once more, and Envoy reads it again.
type FileNotApplied struct {
	WithinChange    bool   `event:"-"`
	Envoy           string // the admin interface
	File            string // below the output directory
	State           string // REJECTED, STALE (neither rejected nor applied) or STATS_EXCLUDED, as in xdspub status
	ExpectedVersion string // of the published file
	RunningVersion  string // that the Envoy runs; empty where it runs none
	Error           string `event:"optional"` // the Envoy's reason, where it gives one
}

func (e FileNotApplied) kind() Kind {
	level := slog.LevelError
	if e.WithinChange {
		level = slog.LevelWarn
	}
	return Kind{"file-not-applied", level, "Envoy does not run a published file"}
}

// EnvoyInSync means that an Envoy runs all published files to which it is subscribed. It is
// logged once for each Envoy after the start of a watch, after each start of the Envoy, and
// after file-not-applied.
type EnvoyInSync struct {
	Envoy string // the admin interface
	Files int    // to how many files it is subscribed
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

// EnvoyUnknown means that what an admin interface answers does not say what the Envoy runs: it
// is none of Envoy's, leaves out statistics, or belongs to an Envoy that reads another
// directory. Each publish fails until that is mended.
//
// Do: correct --envoy-admin, or the stats_matcher of that Envoy's bootstrap.
type EnvoyUnknown struct {
	Envoy string // the admin interface
	Error error
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
	Error error
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

// ClustersWarming means that an Envoy has new clusters that are not warm within --warm-timeout.
// Requests to them fail until they are.
//
// Do: look whether their endpoints, names in DNS and health checks are right.
type ClustersWarming struct {
	Envoy    string // the admin interface
	Clusters []string
}

func (ClustersWarming) kind() Kind {
	return Kind{"clusters-warming", slog.LevelWarn, "clusters are not warm yet; requests to them fail until they are"}
}

// ReasonMissing means that an Envoy rejected something; neither its admin interface nor --envoy-log
// gave the reason.
//
// Do: mend what error says; Envoy's log has the reason.
type ReasonMissing struct {
	Envoy string `event:"optional"` // the admin interface, where it was that
	Error error
}

func (ReasonMissing) kind() Kind {
	return Kind{"reason-missing", slog.LevelWarn, "the reason for Envoy's refusal can't be read"}
}
