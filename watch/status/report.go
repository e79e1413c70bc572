package status

import (
	"slices"
	"time"

	"xdspub/diag"
	"xdspub/render/publish"
	"xdspub/watch/control"
)

// Report is the status of an output directory. Its JSON has every key, and all times in UTC.
type Report struct {
	// InSync means that a snapshot is published and each Envoy runs it. No change is under way or
	// interrupted, no file is known to be edited or missing, no snapshot is held, publishing is neither
	// paused nor pinned, no change waits for an approval, and no snapshot should have been undone.
	InSync bool   `json:"in_sync"`
	Out    string `json:"out"`
	// State means that Out is the directory of serve --state, which has no published files.
	State bool `json:"state"`
	// Published is the published snapshot; nil before the first complete publish.
	Published *Publication `json:"published"`
	// Paused is the pause by an operator; nil without one.
	Paused *control.Shown `json:"paused"`
	// Pinned is the pin of a snapshot of the history, by a rollback; nil without one.
	Pinned *control.Shown `json:"pinned"`
	// Guarded is the change that the guards have refused, and that waits for an approval; nil for none.
	Guarded *control.Guarded `json:"guarded"`
	// Approved is the approval that is not used yet; nil for none.
	Approved *control.Shown `json:"approved"`
	// Trial is the published snapshot if it awaits the confirmation of an operator; nil otherwise.
	Trial *control.Trial `json:"trial"`
	// Change is the change under way or interrupted; nil without one.
	Change *Change `json:"change"`
	// Drifted lists the published files that were edited, replaced or removed by hand; empty during a Change.
	Drifted []string `json:"drifted"`
	// Incomplete means that the part of the record with most published files was removed or damaged. Drifted
	// then can't list all edited files.
	Incomplete bool `json:"incomplete"`
	// Missing lists files that published clusters and listeners refer to and that do not exist. A starting
	// Envoy refuses the resources with these references.
	Missing []string `json:"missing"`
	// Envoys are in the order of Options.Admins.
	Envoys []EnvoyReport `json:"envoys"`
	// Retired lists the clusters and files that wait for their trim.
	Retired []publish.Retired `json:"going"`
	// Held lists the snapshots that Envoy refused; they are not published again.
	Held []publish.Refusal `json:"held"`
	// LastRefusal is the last refusal. Its snapshot may no longer be held.
	LastRefusal *publish.Refusal `json:"last_refusal"`

	dates diag.List // findings about the dates of certificates in the published files
}

// Publication is a published snapshot.
type Publication struct {
	Snapshot  string    `json:"snapshot"`
	Time      time.Time `json:"time"`
	Revision  string    `json:"revision"` // git commit; "" without git
	Format    string    `json:"format"`
	EnvoyPath string    `json:"envoy_path"`
	// Resources counts the resources of the source tree by API, such as "CDS".
	Resources map[string]int `json:"resources"`
	// Part is not nil if the snapshot is a part of a refused source tree (--while-refused).
	Part *publish.Part `json:"part"`
}

// Change is a change from one snapshot to another. From is "" for the first publish, and equals To for a
// trim.
type Change struct {
	From      string            `json:"from"`
	To        string            `json:"to"`
	Direction publish.Direction `json:"direction"`
	Started   time.Time         `json:"begun"`
	Attempt   int               `json:"attempt"`
	// Refusal is the reason for a rollback.
	Refusal *publish.Refusal `json:"refusal"`
}

// EnvoyReport is the state of one Envoy.
type EnvoyReport struct {
	URL    string `json:"url"`
	InSync bool   `json:"in_sync"`
	// Error is why the Envoy gave no answer; the later fields are then empty.
	Error string `json:"error"`
	Down  bool   `json:"down"`  // nothing listens at the address
	Err   error  `json:"-"`     // the cause of Error
	State string `json:"state"` // LIVE, DRAINING, PRE_INITIALIZING or INITIALIZING

	DrainingListeners    int `json:"draining_listeners"`
	DrainingFilterChains int `json:"draining_filter_chains"`
	WarmingListeners     int `json:"warming_listeners"`
	// WarmingClusters are cluster names. Requests to a new cluster get 503 until it is warm.
	WarmingClusters []string `json:"warming_clusters"`
	// Subscriptions are sorted by file. Two clusters may share a file.
	Subscriptions []Row `json:"subscriptions"`
}

// Sync says whether an Envoy runs a published file, in the words of istioctl proxy-status.
type Sync string

const (
	// Rejected: the Envoy runs another version, and has refused a version since its start. For LDS also: the
	// Envoy refused a listener at its last read of the file.
	Rejected Sync = "REJECTED"
	// Stale: the Envoy runs another version, and has refused no version.
	Stale Sync = "STALE"
	// Drifted: the file was edited after its publish. The version in the Envoy doesn't matter.
	Drifted Sync = "DRIFTED"
	// NotSent: the Envoy has no subscription to the file. This is not a fault.
	NotSent Sync = "NOT SENT"
	// Synced: the Envoy runs the published version.
	Synced Sync = "SYNCED"
)

// Syncs lists all values of Sync, worst first.
var Syncs = [...]Sync{Rejected, Stale, Drifted, NotSent, Synced}

// Row is the state of one published file in one Envoy.
type Row struct {
	Sync Sync   `json:"sync"`
	API  string `json:"api"`
	// Name is the name of the resource; "" for a file with all resources of a type, and for a file without
	// subscriptions.
	Name    string `json:"name"`
	File    string `json:"file"`
	Version string `json:"version"` // of the published file
	Runs    string `json:"runs"`    // the version that Envoy runs
	// Stats is the stat prefix of the subscription.
	Stats    string `json:"stats"`
	Refusals uint64 `json:"refusals"` // since the Envoy's start
	// Reasons are Envoy's reasons for refusals.
	Reasons []string `json:"reasons"`
}

// setInSync computes InSync of the Report and of each EnvoyReport.
func (r *Report) setInSync() {
	r.InSync = r.Published != nil && r.Published.Part == nil && r.Paused == nil && r.Pinned == nil && r.Guarded == nil && r.Approved == nil &&
		!r.Trial.IsFault()
	r.InSync = r.InSync && r.Change == nil && !r.Incomplete && len(r.Drifted)+len(r.Missing)+len(r.Held) == 0
	for i := range r.Envoys {
		e := &r.Envoys[i]
		e.InSync = e.Error == "" && !slices.ContainsFunc(e.Subscriptions, func(row Row) bool { return row.Sync != Synced && row.Sync != NotSent })
		r.InSync = r.InSync && e.InSync
	}
}

// Count returns the number of subscriptions in a state.
func (e *EnvoyReport) Count(s Sync) int {
	n := 0
	for _, row := range e.Subscriptions {
		if row.Sync == s {
			n++
		}
	}
	return n
}
