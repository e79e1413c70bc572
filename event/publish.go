package event

import (
	"log/slog"
	"time"
)

// StepPublished means that the files of one step of a change are in the output directory.
type StepPublished struct {
	Step             string // the name of the step, such as clusters
	Written, Removed int    // how many files
}

func (StepPublished) kind() Kind {
	return Kind{"step-published", slog.LevelInfo, "published a step"}
}

// DriftMended means that somebody had edited, replaced or removed published files by hand. The watch has
// restored these files from the source tree; the edits are lost.
//
// Do: make the change in the source tree. Find out who writes into the output directory.
type DriftMended struct {
	Count int      // how many files
	Files []string // at most 10 of them, below the output directory
}

func (DriftMended) kind() Kind {
	return Kind{"drift-mended", slog.LevelWarn, "published files were changed by hand; the watch restored them from the source tree"}
}

// OnEnvoy has the effects of a change on a running Envoy, as xdspub diff finds them. OnEnvoy is empty if the previous
// snapshot is unknown.
type OnEnvoy struct {
	ListenersDrained    int      `event:"optional"` // listeners that the change removes or replaces
	FilterChainsDrained int      `event:"optional"` // filter chains that the change removes or replaces in listeners that stay
	ClustersReplaced    int      `event:"optional"` // clusters that lose their connection pools
	ClustersRemoved     int      `event:"optional"` // clusters that go when no listener that drains can use them
	RoutesMoved         int      `event:"optional"` // example requests that go elsewhere
	EndpointsAdded      int      `event:"optional"` // endpoints that come
	EndpointsRemoved    int      `event:"optional"` // endpoints that go
	EndpointsWeighted   int      `event:"optional"` // endpoints that get another share of the weight
	SecretsRotated      int      `event:"optional"` // secrets that new connections use
	RuntimeChanged      int      `event:"optional"` // runtime keys with another value
	Effects             []string `event:"optional"` // the first of these effects in words, secrets as fingerprints
}

// Count returns the number of effects.
func (o OnEnvoy) Count() int {
	return o.ListenersDrained + o.FilterChainsDrained + o.ClustersReplaced + o.ClustersRemoved + o.RoutesMoved +
		o.EndpointsAdded + o.EndpointsRemoved + o.EndpointsWeighted + o.SecretsRotated + o.RuntimeChanged
}

// Published means that a snapshot is published: all its files are in the output directory. The event comes
// after the last step of a change, and once after the start of a watch.
type Published struct {
	Snapshot         string   // the id of the snapshot
	Written, Removed int      // how many files
	Resources        int      // how many resources the snapshot has
	ResourcesAdded   *int     `event:"optional"` // resources that the previous snapshot lacked; absent if the watch did not publish it
	ResourcesChanged *int     `event:"optional"` // resources that differ from the previous snapshot
	ResourcesRemoved *int     `event:"optional"` // resources that only the previous snapshot had
	Reason           string   // of the reconcile: start, change, rescan, SIGHUP or retry-held
	Revision         string   `event:"optional"` // the git commit of the source tree, with +dirty if the tree differs from that commit
	Author           string   `event:"optional"` // the author of the commit
	Subject          string   `event:"optional"` // the subject of the commit
	NamesAdded       []string `event:"optional"` // the first of resources_added, such as CDS/web
	NamesChanged     []string `event:"optional"` // the first of resources_changed
	NamesRemoved     []string `event:"optional"` // the first of resources_removed

	OnEnvoy

	ReadSeconds    float64 `event:"optional"` // the time to read and check the source tree
	PlanSeconds    float64 `event:"optional"` // the time to plan the files
	PublishSeconds float64 `event:"optional"` // the time to move the files, with the wait for Envoys
	ServeSeconds   float64 `event:"optional"` // the time to pass the snapshot to clients, with the wait for them
}

func (Published) kind() Kind {
	return Kind{"published", slog.LevelInfo, "published the snapshot"}
}

// PartPublished means that a part of a refused or frozen source tree is published. With the setting owners, the folders
// in held keep their last valid resources, and all other folders go on. With --while-refused, faultless changes of live
// endpoints and secrets go on.
type PartPublished struct {
	Snapshot         string    // the id of the part
	WhileRefused     []string  `event:"optional"` // --while-refused
	Held             []string  `event:"optional"` // the first folders with errors, such as teams/a
	HeldSince        time.Time `event:"optional"` // since when the first of them waits
	RefusedSince     time.Time // since when the rest of the source tree waits
	Written, Removed int       // how many files

	ResourcesAdded   *int     `event:"optional"` // resources that the previous snapshot lacks; absent if the watch did not publish it
	ResourcesChanged *int     `event:"optional"` // resources that differ from the previous snapshot
	ResourcesRemoved *int     `event:"optional"` // resources that only the previous snapshot has
	NamesAdded       []string `event:"optional"` // the first of resources_added, such as CDS/web
	NamesChanged     []string `event:"optional"` // the first of resources_changed
	NamesRemoved     []string `event:"optional"` // the first of resources_removed

	Reason string // of the reconcile: start, change, rescan, SIGHUP or retry-held
	OnEnvoy
	PublishSeconds float64 `event:"optional"` // the time to move the files, with the wait for Envoys
	ServeSeconds   float64 `event:"optional"` // the time to pass the part to clients, with the wait for them
}

func (PartPublished) kind() Kind {
	return Kind{"part-published", slog.LevelInfo, "the source tree waits; published a part of it"}
}

// PartWaits means that no part of a refused or frozen source tree can be published. The published snapshot stays.
//
// Do: correct the source tree, or remove the cause.
type PartWaits struct {
	WhileRefused []string  `event:"optional"` // --while-refused
	RefusedSince time.Time // since when the source tree waits
	Cause        string    // why no part is published
}

func (PartWaits) kind() Kind {
	return Kind{"part-waits", slog.LevelWarn, "the source tree waits, and no part of it can be published"}
}

// RolledBack means that an Envoy rejected a snapshot; the previous files were restored. The snapshot is held:
// it is not published again until the source tree changes or somebody asks for a retry.
//
// Do: the findings after the event have Envoy's reason. Correct the source tree, or remove the cause and send
// SIGHUP.
type RolledBack struct {
	Snapshot string // the id of the rejected snapshot
	Step     string // the step that Envoy rejected
	Restored string // the id of the snapshot that is published again
}

func (RolledBack) kind() Kind {
	return Kind{"rolled-back", slog.LevelError, "Envoy rejected the snapshot; rolled back to the snapshot before"}
}

// RefusedKept means that an Envoy rejected the very first snapshot, or a published snapshot that somebody
// asked to retry. The files of the snapshot stay, because no previous files exist.
//
// Do: as for rolled-back.
type RefusedKept struct {
	Snapshot string // the id of the rejected snapshot
	Step     string // the step that Envoy rejected
}

func (RefusedKept) kind() Kind {
	return Kind{"refused-kept", slog.LevelError, "Envoy rejected the snapshot; its files stay, because no previous files exist"}
}

// RollbackFailed means that an Envoy rejected a snapshot, and some of the previous files could not be
// restored. The next reconcile completes the rollback.
//
// Do: remove the cause that the following event failed names, such as a full disk.
type RollbackFailed struct {
	Snapshot string // the id of the rejected snapshot
	Step     string // the step that Envoy rejected
}

func (RollbackFailed) kind() Kind {
	return Kind{"rollback-failed", slog.LevelError, "Envoy rejected the snapshot, and the rollback is incomplete; the next reconcile completes it"}
}

// RollbackResumed means that an earlier process left a rollback incomplete; this process completes
// the rollback.
type RollbackResumed struct {
	Snapshot string // the id of the rejected snapshot
}

func (RollbackResumed) kind() Kind {
	return Kind{"rollback-resumed", slog.LevelWarn, "completing the rollback that an earlier process began"}
}

// RollbackUnconfirmed means that no Envoy confirmed a step of a rollback. The files of the step are restored
// nevertheless.
//
// Do: `xdspub status` shows the version of each Envoy.
type RollbackUnconfirmed struct {
	Step  string // the step
	Error error  // the cause
}

func (RollbackUnconfirmed) kind() Kind {
	return Kind{"rollback-unconfirmed", slog.LevelError, "no Envoy confirmed a step of the rollback"}
}

// RollbackKeptEdit means that somebody had edited a published file before a change that Envoy refused. The
// edit can't be restored, so this file and the files published before it keep the refused change.
//
// Do: correct the source tree: the next change publishes all files.
type RollbackKeptEdit struct {
	File string // below the output directory
}

func (RollbackKeptEdit) kind() Kind {
	return Kind{
		"rollback-kept-edit", slog.LevelWarn,
		"a file was edited by hand before the change; this file and the files published before it are not rolled back",
	}
}

// Held means that the source tree is a snapshot that an Envoy rejected before. It is not
// published; the last valid snapshot stays.
//
// Do: correct the source tree, or, if the cause was elsewhere and is gone, send SIGHUP or call
// `xdspub render --retry-held`.
type Held struct {
	Snapshot string    // the id of the held snapshot
	Since    time.Time // when Envoy rejected it
}

func (Held) kind() Kind {
	return Kind{"held", slog.LevelWarn, "the snapshot is held because Envoy rejected it; the last valid snapshot stays published"}
}

// RefusalEnded means that a snapshot is published after a refused one, so that no snapshot is held.
type RefusalEnded struct {
	Snapshot string // the id of the published snapshot
	Refused  string // the id of the rejected snapshot
}

func (RefusalEnded) kind() Kind {
	return Kind{"refusal-ended", slog.LevelInfo, "a snapshot is published again after Envoy rejected one"}
}

// Trimmed means that unused clusters and files are removed.
type Trimmed struct {
	Written, Removed int // how many files
}

func (Trimmed) kind() Kind {
	return Kind{"trimmed", slog.LevelInfo, "removed unused clusters and files"}
}

// TrimRefused means that an Envoy rejected the removal of clusters and files. These clusters and files stay for
// one more trim delay.
//
// Do: look for the reason in the findings after the event, and in Envoy's log.
type TrimRefused struct {
	Error error // the cause
}

func (TrimRefused) kind() Kind {
	return Kind{"trim-refused", slog.LevelError, "Envoy rejected a trim; the watch trims again after the trim delay"}
}

// ClockSet means that somebody has set the system's clock forward. The watch moves the recorded times forward
// too, so that no trim delay ends early.
type ClockSet struct {
	By time.Duration // by how much
}

func (ClockSet) kind() Kind {
	return Kind{"clock-set", slog.LevelWarn, "the clock was set forward; the recorded times of retired clusters and files were moved with it"}
}

// HistoryDamaged means that a file of the history is damaged, or is not a file of the history. The file stays where it
// is. Entries that need the file can't be shown or published again; new entries don't need the file.
//
// Do: restore the file from a backup, or remove it. `xdspub history` lists the entries that are whole.
type HistoryDamaged struct {
	File  string // the path
	Error error  // the fault
}

func (HistoryDamaged) kind() Kind {
	return Kind{"history-damaged", slog.LevelWarn, "a file of the history can't be used"}
}

// HistoryFailed means that the history could not be written: the history may lack the published snapshot, or still have
// old entries. The publish itself succeeded.
//
// Do: remove the cause, such as a full disk. The next publish or the next start records the published snapshot.
type HistoryFailed struct {
	Snapshot string // the id of the published snapshot
	Error    error  // the cause
}

func (HistoryFailed) kind() Kind {
	return Kind{"history-failed", slog.LevelWarn, "the history could not be written"}
}
