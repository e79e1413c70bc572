package pipeline

import (
	"slices"
	"time"

	"xdspub/publish"
)

// Report is what Status found. As JSON it has every key, and all times in UTC.
type Report struct {
	// InSync tells that something is published, that each Envoy runs it, and that
	// nothing else is wrong either: no change was interrupted, no file was edited or is
	// missing, no snapshot is held.
	InSync bool   `json:"in_sync"`
	Out    string `json:"out"`
	// Published is the snapshot that is out; nil where there never was a whole one.
	Published *Publication `json:"published"`
	// Change is on its way, or was interrupted; nil where there is none.
	Change *Change `json:"change"`
	// Drifted are the published files that were edited, replaced or removed by hand.
	// While there is a Change it can't be told.
	Drifted []string `json:"drifted"`
	// Missing are further files that published clusters and listeners name and that are
	// not there: an Envoy that starts refuses what names them.
	Missing []string `json:"missing"`
	// Envoys are in the order in which they were asked for.
	Envoys []EnvoyReport `json:"envoys"`
	// Retired are the clusters and files that wait for their trim.
	Retired []publish.Retired `json:"going"`
	// Held are the snapshots that Envoy refused and that are not tried again.
	Held []publish.Refusal `json:"held"`
	// LastRefusal may be of one that is held, or long ago.
	LastRefusal *publish.Refusal `json:"last_refusal"`
}

// Publication is a snapshot that is out.
type Publication struct {
	Snapshot  string    `json:"snapshot"`
	Time      time.Time `json:"time"`
	Revision  string    `json:"revision"` // the git commit, "" where there is none
	Format    string    `json:"format"`
	EnvoyPath string    `json:"envoy_path"`
	// Resources counts those of the source tree by type, as in "CDS".
	Resources map[string]int `json:"resources"`
}

// Change is the way from one snapshot to another. From is "" for a first one, and
// the same as To for a trim.
type Change struct {
	From      string            `json:"from"`
	To        string            `json:"to"`
	Direction publish.Direction `json:"direction"`
	Started   time.Time         `json:"begun"`
	Attempt   int               `json:"attempt"`
	// Refusal is why it goes back.
	Refusal *publish.Refusal `json:"refusal"`
}

// EnvoyReport is what one Envoy runs.
type EnvoyReport struct {
	URL    string `json:"url"`
	InSync bool   `json:"in_sync"`
	// Error is why it gave no answer; all below is empty then.
	Error string `json:"error"`
	State string `json:"state"` // LIVE, DRAINING, PRE_INITIALIZING or INITIALIZING

	DrainingListeners    int `json:"draining_listeners"`
	DrainingFilterChains int `json:"draining_filter_chains"`
	WarmingListeners     int `json:"warming_listeners"`
	// WarmingClusters are names: requests to a new one get 503 until it is warm.
	WarmingClusters []string `json:"warming_clusters"`
	// Subscriptions are by file; two clusters may have one file in common.
	Subscriptions []Row `json:"subscriptions"`
}

// Sync is a word for what an Envoy makes of a published file.
type Sync string

const (
	// Rejected: it runs another version, and has refused one since its start. Of
	// listeners it is also that it refused one of them when it read the file last.
	Rejected Sync = "REJECTED"
	// Stale: it runs another version and has refused none.
	Stale Sync = "STALE"
	// Drifted: the file is not as it was published, whatever Envoy runs.
	Drifted Sync = "DRIFTED"
	// NotSent: nothing in this Envoy is subscribed to it. That is no fault.
	NotSent Sync = "NOT SENT"
	// Synced: it runs what is out.
	Synced Sync = "SYNCED"
)

// Syncs are all of them, the worst first.
var Syncs = [...]Sync{Rejected, Stale, Drifted, NotSent, Synced}

// Row is what an Envoy makes of one published file.
type Row struct {
	Sync Sync   `json:"sync"`
	API  string `json:"api"`
	// Name is the resource's; "" where the file holds all of its type, and where
	// nothing is subscribed to it.
	Name    string `json:"name"`
	File    string `json:"file"`
	Version string `json:"version"` // that is out
	Runs    string `json:"runs"`    // that Envoy took last
	// Stats is where Envoy has the statistics of the subscription.
	Stats    string `json:"stats"`
	Refusals uint64 `json:"refusals"` // since its start
	// Reasons are Envoy's words, where it has some.
	Reasons []string `json:"reasons"`
}

// judge sets what is in sync.
func (r *Report) judge() {
	r.InSync = r.Published != nil && r.Change == nil && len(r.Drifted)+len(r.Missing)+len(r.Held) == 0
	for i := range r.Envoys {
		e := &r.Envoys[i]
		e.InSync = e.Error == "" && !slices.ContainsFunc(e.Subscriptions, func(row Row) bool { return row.Sync != Synced && row.Sync != NotSent })
		r.InSync = r.InSync && e.InSync
	}
}

// Count is how many files an Envoy makes that of.
func (e *EnvoyReport) Count(s Sync) int {
	n := 0
	for _, row := range e.Subscriptions {
		if row.Sync == s {
			n++
		}
	}
	return n
}
