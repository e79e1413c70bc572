package watch

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xdspub/diag"
	"xdspub/watch/control"
	"xdspub/xds"
	"xdspub/xds/clients"
	"xdspub/xds/variants"
)

// critic is a Server whose clients reject a cluster.
type critic struct {
	rejects string // its name
	asksNo  bool   // no client is connected
	served  []string
	now     *xds.Snapshot
	// restored was served before the first Publish.
	restored *xds.Snapshot
}

func (s *critic) Publish(_ context.Context, is *xds.Snapshot) error {
	if s.rejects != "" && is.Lookup(xds.Cluster, s.rejects) != nil {
		return &clients.RefusedError{Findings: diag.List{{Code: "refused-by-client", Message: "no " + s.rejects}}, TakenBack: s.now != nil}
	}
	s.now = is
	s.served = append(s.served, is.Of(xds.Cluster)[0].Name)
	return nil
}

func (s *critic) Restore(_ context.Context, is *xds.Snapshot) error {
	s.restored = is
	s.now = is
	return nil
}

func (s *critic) Served() *xds.Snapshot { return s.now }

func (s *critic) Transitions(to *xds.Snapshot) []variants.Transition {
	if s.now == nil {
		return nil
	}
	return []variants.Transition{{From: s.now, To: to}}
}

func (s *critic) Retry(context.Context) error { return nil }

func (s *critic) Clients() []clients.Client { return []clients.Client{{Node: "edge"}} }

func (s *critic) Confirms() bool { return false }

func (s *critic) Unconfirmed() string { return "" }

func (s *critic) Acknowledged() bool { return !s.asksNo }

func (s *critic) ConfirmedLate() <-chan struct{} { return nil }

func (s *critic) Tell(control.Watch) {}

func (s *critic) Trim(context.Context, time.Time) (int, time.Time, error) {
	return 0, time.Time{}, nil
}

// TestClientsReject checks that a snapshot that clients of the Server reject is held until the source changes
// or somebody asks for a retry. The output directory has the snapshot before.
func TestClientsReject(t *testing.T) {
	for _, writes := range []bool{false, true} {
		s := newSite(t, web)
		server := &critic{rejects: "other"}
		s.o.Server = server
		out := s.o.Out
		if !writes {
			s.o.Out = ""
		}
		c := New(s.o)
		if err := c.Open(); err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		expect := func(want Verdict, words string) {
			t.Helper()
			if o := s.pass(c); o.Verdict != want || !strings.Contains(o.Message(), words) {
				t.Errorf("%s: %s, want %s: %s", o.Verdict, o.Message(), want, words)
			}
		}
		expect(Published, map[bool]string{false: "is served", true: "written"}[writes])
		s.write(other)
		expect(RefusedByEnvoy, `in step "clients": the snapshot before is published again`)
		if writes {
			if text, err := os.ReadFile(filepath.Join(out, "cds/cds.json")); err != nil || !strings.Contains(string(text), `"web"`) {
				t.Error(string(text), err)
			}
			if c.SnapshotID() != server.now.ID() {
				t.Errorf("on record is %s", c.SnapshotID())
			}
		}
		expect(Held, "--retry-held")
		c.RetryHeld()
		expect(RefusedByEnvoy, "rejected")
		server.rejects = ""
		expect(Held, "")
		c.RetryHeld()
		expect(Published, "")
		server.rejects = "web"
		s.write(web)
		expect(RefusedByEnvoy, "")
		s.write(strings.ReplaceAll(other, "other", "third"))
		expect(Published, "")
		s.write(web) // no longer held
		expect(RefusedByEnvoy, "")
		if want := []string{"web", "other", "third"}; !slices.Equal(server.served, want) {
			t.Errorf("served %v, want %v", server.served, want)
		}
	}
}

// TestFirstOfClientsStays checks that the first snapshot stays published if clients reject it.
func TestFirstOfClientsStays(t *testing.T) {
	s := newSite(t, web)
	s.o.Server, s.o.Out = &critic{rejects: "web"}, ""
	c := New(s.o)
	for range 2 {
		if o := s.pass(c); o.Verdict != RefusedByEnvoy || !strings.Contains(o.Message(), "it stays published") {
			t.Errorf("%s: %s", o.Verdict, o.Message())
		}
	}
}

// asks is a Server with a quorum of clients.
type asks struct {
	critic
	missed string // why the quorum has not acknowledged the published snapshot
}

func (s *asks) Confirms() bool { return true }

func (s *asks) Unconfirmed() string { return s.missed }

// TestAcknowledgedBefore checks that a snapshot whose quorum was missed does not count as acknowledged because the
// source tree is refused, or waits.
func TestAcknowledgedBefore(t *testing.T) {
	for missed, want := range map[string]bool{"": true, "0 of the 1 client": false} {
		w := &watching{Controller: &Controller{options: Options{Server: &asks{missed: missed}}}}
		w.changeLog.published = "v1"
		w.acknowledgedBefore()
		if is := w.shown.Acknowledged; is != want {
			t.Errorf("%q: %v", missed, is)
		}
	}
}
