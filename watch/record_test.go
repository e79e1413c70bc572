package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/event"
	"xdspub/render/history"
	"xdspub/render/publish"
)

// reopened returns an open Controller of the next process.
func (s *site) reopened(c *Controller) *Controller {
	s.t.Helper()
	if c != nil {
		c.Close()
	}
	c = New(s.o)
	if err := c.Open(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// entries returns the entries in a directory, the latest first, which all have to be whole.
func entries(t *testing.T, dir string) []history.Item {
	t.Helper()
	h, err := history.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, i := range h.Items() {
		s, err := h.Load(i.ID, nil)
		if err != nil {
			t.Error(err)
		} else if s.ID() != i.Content {
			t.Errorf("snapshot %s, want %s", s.ID(), i.Content)
		}
	}
	return h.Items()
}

func TestRecord(t *testing.T) {
	s := newSite(t, web)
	s.o.History, s.o.Command, s.o.By, s.o.Reason = history.Options{Keep: 10}, "watch", "me@here", "because"
	s.o.Revision = func(context.Context) string { return "0123456789012345678901234567890123456789+dirty" }
	s.o.About = func(context.Context, string) (string, string) { return "author", "subject" }
	c := s.reopened(nil)
	first := s.pass(c)
	s.write(other)
	second := s.pass(c)
	s.pass(c) // moves nothing
	s.write(wrong)
	s.pass(c) // is invalid
	list := entries(t, s.o.Out)
	if len(list) != 2 || list[0].Snapshot != second.Snapshot || list[1].Snapshot != first.Snapshot {
		t.Fatalf("%+v", list)
	}
	i := list[0]
	if got := fmt.Sprint(i.Command, i.By, i.Reason, i.Revision, i.Author, i.Subject, i.Format, i.Resources, *i.Changes, i.Outcome()); got !=
		"watchme@herebecause0123456789012345678901234567890123456789+dirtyauthorsubjectjsonmap[CDS:1] {1 0 1 [CDS/other] [] [CDS/web]}unconfirmed" {
		t.Error(got)
	}
}

// TestRecordAfterKill checks that the next process records a snapshot whose process was killed before its Record, with
// the time of the publish.
func TestRecordAfterKill(t *testing.T) {
	s := newSite(t, web)
	c := s.reopened(nil)
	s.pass(c) // without a history, as if killed before Record
	m, err := publish.ReadManifest(s.o.Out)
	if err != nil {
		t.Fatal(err)
	}
	s.o.History.Keep = 10
	for range 2 {
		c = s.reopened(c)
		s.pass(c)
	}
	if list := entries(t, s.o.Out); len(list) != 1 || !list[0].Time.Equal(m.Published) {
		t.Errorf("%+v, published %v", list, m.Published)
	}
}

// TestRecordOfServer records what a Server without an output directory serves, with rejected snapshots, in the
// directory of Options.State.
func TestRecordOfServer(t *testing.T) {
	s := newSite(t, web)
	server := &critic{rejects: "other"}
	s.o.Server, s.o.State, s.o.Out, s.o.ClientsConfirm = server, filepath.Join(t.TempDir(), "state"), "", true
	s.o.History.Keep = 10
	c := s.reopened(nil)
	if _, ok := errors.AsType[*publish.LockedError](New(s.o).Open()); !ok {
		t.Error("two processes have one directory")
	}
	s.pass(c)
	s.write(other)
	s.pass(c)
	s.pass(c) // held
	c.RetryHeld()
	s.pass(c) // rejected again
	s.write(strings.ReplaceAll(other, "other", "third"))
	s.pass(c)
	server.asksNo = true
	s.write(strings.ReplaceAll(other, "other", "fourth"))
	s.pass(c)
	var got []string
	for _, i := range entries(t, s.o.State) {
		if got = append(got, string(i.Outcome())); i.Changes != nil {
			got = append(got, fmt.Sprintf("%+d%+d", i.Changes.Added, -i.Changes.Removed))
		}
	}
	if want := "[unconfirmed +1-1 acknowledged +1-1 rejected +1-1 acknowledged]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// TestRecordAcknowledged checks that a later acknowledgement changes the outcome of the entry.
func TestRecordAcknowledged(t *testing.T) {
	s := newSite(t, web)
	s.o.History.Keep = 10
	c := s.reopened(nil)
	s.pass(c)
	c.recordAcknowledged()
	c.recordAcknowledged()
	if list := entries(t, s.o.Out); len(list) != 1 || list[0].Outcome() != history.Acknowledged {
		t.Errorf("%+v", list)
	}
}

// TestRecordFails checks that a fault of the history is logged, and that the snapshot is published nevertheless. Once
// the fault is gone, the next pass records the snapshot.
func TestRecordFails(t *testing.T) {
	s := newSite(t, web)
	var log bytes.Buffer
	s.o.Log = event.New(slog.NewTextHandler(&log, nil))
	s.o.History.Keep = 10
	c := s.reopened(nil)
	place := filepath.Join(s.o.Out, ".xdspub/history")
	if err := os.WriteFile(place, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if o := s.pass(c); o.Verdict != Published || !strings.Contains(log.String(), "event=history-failed") {
		t.Errorf("%s; %s", o.Message(), &log)
	}
	if err := os.Remove(place); err != nil {
		t.Fatal(err)
	}
	s.pass(c)
	if list := entries(t, s.o.Out); len(list) != 1 {
		t.Errorf("%+v", list)
	}
}
