package status

import (
	"slices"
	"time"

	"xdspub/diag"
	"xdspub/render/publish"
)

// Report is the status of an output directory. As JSON it has every key, and all times in UTC.
type Report struct {
	// InSync means that a snapshot is published, that each Envoy runs it, that no change was
	// interrupted, no file was edited or is missing as far as that can be told of all, and no
	// snapshot is held.
	InSync bool   `json:"in_sync"`
	Out    string `json:"out"`
	// Published is the published snapshot; nil where none was ever published whole.
	Published *Publication `json:"published"`
	// Change is the change that is under way or was interrupted; nil where there is none.
	Change *Change `json:"change"`
	// Drifted are the published files that were edited, replaced or removed by hand. It is
	// empty while there is a Change.
	Drifted []string `json:"drifted"`
	// Incomplete means that somebody has removed or damaged the part of the record that lists most
	// of the published files: which of them were edited by hand can't be told.
	Incomplete bool `json:"incomplete"`
	// Missing are further files that published clusters and listeners name and that do not
	// exist: an Envoy that starts refuses the resources that name them.
	Missing []string `json:"missing"`
	// Envoys are in the order of Options.Admins.
	Envoys []EnvoyReport `json:"envoys"`
	// Retired are the clusters and files that wait for their trim.
	Retired []publish.Retired `json:"going"`
	// Held are the snapshots that Envoy refused and that are not published again.
	Held []publish.Refusal `json:"held"`
	// LastRefusal is the last refusal; its snapshot may be held no longer.
	LastRefusal *publish.Refusal `json:"last_refusal"`

	dates diag.List // findings about the dates of certificates in the published files
}

// Publication is a published snapshot.
type Publication struct {
	Snapshot  string    `json:"snapshot"`
	Time      time.Time `json:"time"`
	Revision  string    `json:"revision"` // the git commit, "" where there is none
	Format    string    `json:"format"`
	EnvoyPath string    `json:"envoy_path"`
	// Resources counts those of the source tree by type, as in "CDS".
	Resources map[string]int `json:"resources"`
}

// Change is a change from one snapshot to another. From is "" for the first, and equals To
// for a trim.
type Change struct {
	From      string            `json:"from"`
	To        string            `json:"to"`
	Direction publish.Direction `json:"direction"`
	Started   time.Time         `json:"begun"`
	Attempt   int               `json:"attempt"`
	// Refusal is the reason of a rollback.
	Refusal *publish.Refusal `json:"refusal"`
}

// EnvoyReport is the state of one Envoy.
type EnvoyReport struct {
	URL    string `json:"url"`
	InSync bool   `json:"in_sync"`
	// Error is why the Envoy gave no answer; all below is empty then.
	Error string `json:"error"`
	Down  bool   `json:"down"`  // nothing answers there, rather than too late
	State string `json:"state"` // LIVE, DRAINING, PRE_INITIALIZING or INITIALIZING

	DrainingListeners    int `json:"draining_listeners"`
	DrainingFilterChains int `json:"draining_filter_chains"`
	WarmingListeners     int `json:"warming_listeners"`
	// WarmingClusters are names: requests to a new one get 503 until it is warm.
	WarmingClusters []string `json:"warming_clusters"`
	// Subscriptions are sorted by file; two clusters may share one file.
	Subscriptions []Row `json:"subscriptions"`
}

// Sync says whether an Envoy runs a published file, in the words of istioctl proxy-status.
type Sync string

const (
	// Rejected: the Envoy runs another version, and has refused one since its start; for
	// LDS also: it refused a listener when it last read the file.
	Rejected Sync = "REJECTED"
	// Stale: the Envoy runs another version and has refused none.
	Stale Sync = "STALE"
	// Drifted: the file was edited since it was published, whatever the Envoy runs.
	Drifted Sync = "DRIFTED"
	// NotSent: this Envoy is not subscribed to the file. That is no fault.
	NotSent Sync = "NOT SENT"
	// Synced: the Envoy runs the published version.
	Synced Sync = "SYNCED"
)

// Syncs lists all values of Sync, the worst first.
var Syncs = [...]Sync{Rejected, Stale, Drifted, NotSent, Synced}

// Row is the state of one published file in one Envoy.
type Row struct {
	Sync Sync   `json:"sync"`
	API  string `json:"api"`
	// Name is that of the resource; "" where the file holds all resources of its type, and
	// where nothing is subscribed to it.
	Name    string `json:"name"`
	File    string `json:"file"`
	Version string `json:"version"` // of the published file
	Runs    string `json:"runs"`    // the version that Envoy runs
	// Stats is the stat prefix of the subscription.
	Stats    string `json:"stats"`
	Refusals uint64 `json:"refusals"` // since its start
	// Reasons are those that Envoy gives for refusals.
	Reasons []string `json:"reasons"`
}

// setInSync sets InSync.
func (r *Report) setInSync() {
	r.InSync = r.Published != nil && r.Change == nil && !r.Incomplete && len(r.Drifted)+len(r.Missing)+len(r.Held) == 0
	for i := range r.Envoys {
		e := &r.Envoys[i]
		e.InSync = e.Error == "" && !slices.ContainsFunc(e.Subscriptions, func(row Row) bool { return row.Sync != Synced && row.Sync != NotSent })
		r.InSync = r.InSync && e.InSync
	}
}

// Count returns how many subscriptions have the state s.
func (e *EnvoyReport) Count(s Sync) int {
	n := 0
	for _, row := range e.Subscriptions {
		if row.Sync == s {
			n++
		}
	}
	return n
}
