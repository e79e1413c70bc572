package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"xdspub/render/publish"
	"xdspub/watch/status"
)

// TestStatusText prints a large report: long lists end in a count, and faults come first.
func TestStatusText(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rows := func(s status.Sync, n int) []status.Row {
		list := make([]status.Row, n)
		for i := range list {
			list[i] = status.Row{Sync: s, API: "EDS", File: fmt.Sprintf("eds/%d/eds.json", i), Stats: fmt.Sprintf("cluster.%d", i), Version: "v2", Runs: "v1"}
		}
		return list
	}
	lds := status.Row{Sync: status.Rejected, API: "LDS", File: "lds/lds.json", Stats: "listener_manager.lds", Version: "v2", Refusals: 1, Reasons: []string{`listener "edge": no`}}
	r := &status.Report{
		Published: &status.Publication{Snapshot: "v2", Time: now.Add(-90 * time.Second), Revision: "abc+dirty", Resources: map[string]int{"CDS": 10000, "LDS": 1}},
		Change:    &status.Change{To: "v3", Direction: publish.Forward, Started: now.Add(-time.Second), Attempt: 1},
		Envoys: []status.EnvoyReport{
			{URL: "http://good", InSync: true, State: "LIVE", Subscriptions: rows(status.Synced, 10000)},
			{URL: "http://stale", State: "LIVE", DrainingListeners: 1, DrainingFilterChains: 2, Subscriptions: append(rows(status.Stale, 12), rows(status.Synced, 9988)...)},
			{URL: "http://bad", State: "INITIALIZING", WarmingListeners: 1, WarmingClusters: []string{"a", "b"}, Subscriptions: append(rows(status.NotSent, 1), lds)},
			{URL: "http://down", Error: "envoy http://down: is down: refused"},
		},
		Retired: []publish.Retired{{Cluster: "old", Since: now.Add(-time.Hour)}, {File: "rds/old/rds.json"}},
	}
	for i := range 11 {
		r.Retired = append(r.Retired, publish.Retired{Cluster: fmt.Sprint("c", i)})
	}
	const want = `
not in sync: a change is under way or was interrupted; 1 of 4 Envoys does not answer; 2 of 4 Envoys are not in sync
published: snapshot v2 at 2026-01-02T03:02:35Z (1m30s ago), revision abc+dirty
  resources: CDS 10000, LDS 1
watch: none is running (no control socket)
change: forward, from nothing to v3, begun at 2026-01-02T03:04:04Z (1s ago)
  it is under way, or was interrupted: then the next render or watch continues it
Envoy http://down: is down: refused
Envoy http://bad: not in sync, INITIALIZING, 1 REJECTED, 1 NOT SENT; warms 1 listener and 2 clusters
  REJECTED  lds/lds.json (listener_manager.lds): expected version v2, runs none, and has rejected 1 file since its start
            listener "edge": no
  NOT SENT  eds/0/eds.json
  warming clusters: "a", "b"
Envoy http://stale: not in sync, LIVE, 12 STALE, 9988 SYNCED; drains 1 listener and 2 filter chains
  STALE     eds/0/eds.json (cluster.0): expected version v2, runs v1
  STALE     eds/1/eds.json (cluster.1): expected version v2, runs v1
  STALE     eds/2/eds.json (cluster.2): expected version v2, runs v1
  STALE     eds/3/eds.json (cluster.3): expected version v2, runs v1
  STALE     eds/4/eds.json (cluster.4): expected version v2, runs v1
  STALE     eds/5/eds.json (cluster.5): expected version v2, runs v1
  STALE     eds/6/eds.json (cluster.6): expected version v2, runs v1
  STALE     eds/7/eds.json (cluster.7): expected version v2, runs v1
  STALE     eds/8/eds.json (cluster.8): expected version v2, runs v1
  STALE     eds/9/eds.json (cluster.9): expected version v2, runs v1
  … and 2 more STALE: --format json has them all
Envoy http://good: in sync, LIVE, 10000 SYNCED
retired, removed when nothing that drains can use them:
  cluster "old", since 2026-01-02T02:04:05Z (1h0m0s ago)
  rds/old/rds.json, not before the change is complete
  cluster "c0", not before the change is complete
  cluster "c1", not before the change is complete
  cluster "c2", not before the change is complete
  cluster "c3", not before the change is complete
  cluster "c4", not before the change is complete
  cluster "c5", not before the change is complete
  cluster "c6", not before the change is complete
  cluster "c7", not before the change is complete
  … and 3 more: --format json has them all
`
	var b strings.Builder
	if err := writeStatus(&b, &status.Status{Report: r, WatchState: status.WatchNone}, now); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
