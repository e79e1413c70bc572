package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"xdspub/clients"
	"xdspub/diag"
)

// TestWriteHostileClients: a server can't write to the terminal what it likes.
func TestWriteHostileClients(t *testing.T) {
	const bad = "\x1b[2J\r\n"
	var b bytes.Buffer
	if err := writeClients(&b, clientsReport{Clients: []clients.Client{{Node: bad, UserAgent: bad, Address: bad, Kind: bad, Subscriptions: []clients.Subscription{{
		Sync: clients.Stale, API: bad, Version: bad, Acknowledged: bad,
		Refusal: &clients.Refusal{Findings: diag.List{{Code: bad, Message: bad, Position: diag.Position{File: bad}}}},
	}}}}}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.ContainsAny(text, "\x1b\r") || strings.Count(text, "\n") != 4 {
		t.Errorf("%q", text)
	}
}

// TestWriteClients: who is not in sync comes first, and why.
func TestWriteClients(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var b bytes.Buffer
	err := writeClients(&b, clientsReport{Clients: []clients.Client{
		{Node: "a", UserAgent: "envoy 1.40.0", Address: "10.0.0.1:4711", Kind: "ads", Since: at, Subscriptions: []clients.Subscription{{Sync: clients.Synced, API: "CDS"}, {Sync: clients.NotSent, API: "RTDS"}}},
		{Node: "b", Address: "unix:s", Kind: "delta-ads", Since: at, Subscriptions: []clients.Subscription{{
			Sync: clients.Rejected, API: "LDS", Version: "v2", Acknowledged: "v1", Since: at,
			Refusal: &clients.Refusal{Findings: diag.List{{Code: "refused-by-client", Position: diag.Position{File: "a.yaml", Line: 3}, Message: "client \"b\" rejected LDS \"in\": no"}}},
		}}},
		{Node: "c", Kind: "ads", Since: at, Gone: at, Subscriptions: []clients.Subscription{{Sync: clients.Stale, API: "CDS"}}},
	}}, at.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	want := `not in sync: 1 of 2 clients is not in sync
client "b" (unix:s): delta-ads, since 2026-01-02T03:04:05Z (1m0s ago), 1 REJECTED
  REJECTED  LDS: served is version v2, acknowledged v1, since 2026-01-02T03:04:05Z (1m0s ago)
            a.yaml:3: error: client "b" rejected LDS "in": no [refused-by-client]
client "a" (envoy 1.40.0, 10.0.0.1:4711): ads, since 2026-01-02T03:04:05Z (1m0s ago), 1 NOT SENT, 1 SYNCED
client "c" (): ads, gone at 2026-01-02T03:04:05Z (1m0s ago), 1 STALE
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
