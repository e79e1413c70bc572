package controller

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"xdspub/control"
	"xdspub/watch"
)

// TestWholeLook: whatever looks at the whole source tree looks at the whole output directory.
// A rescan that comes in a burst of events has no signal of its own.
func TestWholeLook(t *testing.T) {
	s := newSite(t, web)
	log := slog.New(slog.DiscardHandler)
	w := &watching{Controller: New(s.o), control: control.New(log), changeLog: changeLog{log: log}}
	defer w.Close()
	var err error
	if w.watcher, err = watch.New(t.Context(), s.o.Source, watch.Options{}); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	defer w.watcher.Run(ended) // frees what New took
	if err := w.Open(); err != nil {
		t.Fatal(err)
	}
	turn := func(reason string) {
		t.Helper()
		if _, err := w.turn(t.Context(), reason); err != nil {
			t.Fatal(err)
		}
	}
	turn(starting)
	clusters := filepath.Join(s.o.Out, "cds", "cds.json")
	if err := os.Remove(clusters); err != nil {
		t.Fatal(err)
	}
	w.unread.All = true
	turn(string(watch.Change))
	if _, err := os.Stat(clusters); err != nil {
		t.Errorf("after a look at the whole tree: %v", err)
	}
}
