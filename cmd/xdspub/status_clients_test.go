package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"xdspub/diag"
	"xdspub/internal/expiry"
	"xdspub/serve/csds"
	"xdspub/watch/control"
	"xdspub/xds/clients"
)

// TestWriteHostileClients checks that no control characters of a server get to the terminal.
func TestWriteHostileClients(t *testing.T) {
	const bad = "\x1b[2J\r\n"
	var b bytes.Buffer
	list := []clients.Client{{Node: bad, UserAgent: bad, Address: bad, Kind: bad, Subscriptions: []clients.Subscription{{
		Sync: clients.Stale, API: bad, Version: bad, Acknowledged: bad,
		Refusal: &clients.Refusal{Findings: diag.List{{Code: bad, Message: bad, Position: diag.Position{File: bad}}}},
	}, {Sync: clients.NoVariant, API: bad, Missing: []string{bad}}}}}
	server := csds.Server{Watch: control.Watch{
		Acknowledged: true,
		Source:       bad, Snapshot: bad, Revision: bad, Failed: bad, Last: &control.Reconcile{Reason: bad, Outcome: control.Outcome(bad)},
		Refused:      &control.Refusal{Snapshot: bad, Findings: diag.List{{Code: bad, Message: bad, Position: diag.Position{File: bad}}}},
		Certificates: control.Certificates{ExpireSoon: diag.List{{Code: bad, Message: bad, Position: diag.Position{File: bad}}}},
	}}
	if err := writeClients(&b, newClientsReport(bad, &csds.Answer{Server: server, Clients: list}, time.Time{}), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.ContainsAny(text, "\x1b\r") || strings.Count(text, "\n") != 13 {
		t.Errorf("%q", text)
	}
}

// TestWriteClients checks that clients out of sync come first, with the reason.
func TestWriteClients(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var b bytes.Buffer
	answer := &csds.Answer{Server: csds.Server{Watch: control.Watch{
		Acknowledged: true,
		Source:       "/tree", Revision: "abc", Snapshot: "v1", SnapshotSince: at,
		Last:    &control.Reconcile{Reason: "change", Ended: at, Outcome: control.Refused},
		Refused: &control.Refusal{Since: at, Errors: 2, Findings: diag.List{{Code: "unknown-field", Position: diag.Position{File: "a.yaml", Line: 2}, Message: "no"}}},
		Certificates: control.Certificates{
			OutOfDate:  diag.List{{Code: "expired-certificate/expired", Severity: diag.Warning, Position: diag.Position{File: "b.yaml", Line: 3}, Message: "expired"}},
			ExpireSoon: diag.List{{Code: "expired-certificate/expires-soon", Severity: diag.Warning, Position: diag.Position{File: "c.yaml", Line: 4}, Message: "soon"}},
		},
	}, Certificate: expiry.Validity{From: at.Add(-9 * time.Hour), Until: at.Add(time.Hour)}, ClientCA: expiry.Validity{From: at, Until: at}}, Clients: []clients.Client{
		{Node: "a", UserAgent: "envoy 1.40.0", Address: "10.0.0.1:4711", Kind: "ads", Since: at, Subscriptions: []clients.Subscription{{Sync: clients.Synced, API: "CDS"}, {Sync: clients.NotSent, API: "RTDS"}}},
		{Node: "b", Address: "unix:s", Kind: "delta-ads", Since: at, Subscriptions: []clients.Subscription{{
			Sync: clients.Rejected, API: "LDS", Version: "v2", Acknowledged: "v1", Since: at,
			Refusal: &clients.Refusal{Findings: diag.List{{Code: "refused-by-client", Position: diag.Position{File: "a.yaml", Line: 3}, Message: "client \"b\" rejected LDS \"in\": no"}}},
		}}},
		{Node: "c", Kind: "ads", Since: at, Gone: at, Subscriptions: []clients.Subscription{{Sync: clients.Stale, API: "CDS"}}},
		{Node: "d", Kind: "ads", Since: at, Subscriptions: []clients.Subscription{{Sync: clients.NoVariant, API: "LDS", Missing: []string{"edge"}, Acknowledged: "v0"}, {Sync: clients.Synced, API: "CDS", Acknowledged: "v3"}}},
	}}
	now := at.Add(time.Minute)
	if err := writeClients(&b, newClientsReport("unix:s", answer, now), now); err != nil {
		t.Fatal(err)
	}
	want := `not in sync: the source tree is invalid (2 errors); 1 certificate is out of date; the CA of clients has expired; 2 of 3 clients are not in sync
serves: snapshot v1 since 2026-01-02T03:04:05Z (1m0s ago)
source: /tree, revision abc, read at 2026-01-02T03:04:05Z (1m0s ago) (change): refused
  is invalid since 2026-01-02T03:04:05Z (1m0s ago): 2 errors
  a.yaml:2: error: no [unknown-field]
  … and 1 more finding
source tree: 1 certificate is out of date
  b.yaml:3: warning: expired [expired-certificate/expired]
source tree: 1 certificate expires soon
  c.yaml:4: warning: soon [expired-certificate/expires-soon]
certificate: expires at 2026-01-02T04:04:05Z (in 59m0s)
CA of clients: expired at 2026-01-02T03:04:05Z: clients can't connect by TLS
client "b" (unix:s): delta-ads, since 2026-01-02T03:04:05Z (1m0s ago), 1 REJECTED
  runs LDS v1
  REJECTED  LDS: served is version v2, acknowledged v1, since 2026-01-02T03:04:05Z (1m0s ago)
            a.yaml:3: error: client "b" rejected LDS "in": no [refused-by-client]
client "d" (): ads, since 2026-01-02T03:04:05Z (1m0s ago), 1 NO VARIANT, 1 SYNCED
  runs LDS v0, CDS v3
  NO VARIANT  LDS: client "d" gets no variant of listener "edge"; it keeps what it has
client "a" (envoy 1.40.0, 10.0.0.1:4711): ads, since 2026-01-02T03:04:05Z (1m0s ago), 1 NOT SENT, 1 SYNCED
client "c" (): ads, gone at 2026-01-02T03:04:05Z (1m0s ago), 1 STALE
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
