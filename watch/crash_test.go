package watch

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/render/publish"
	"xdspub/watch/control"
	"xdspub/watch/notify"
)

// faultyConfirmer panics after the first step of a change.
type faultyConfirmer struct{}

func (faultyConfirmer) Before(context.Context, publish.Step) error { return nil }

func (faultyConfirmer) After(context.Context, publish.Step) (bool, error) {
	panic("the confirmer is faulty")
}

// TestPanicWithinChange checks that a panic between two steps of a change is an event, that the watch keeps its lock,
// and that the next reconcile completes the change.
func TestPanicWithinChange(t *testing.T) {
	s := newSite(t, web)
	var log bytes.Buffer
	s.o.Log = event.New(slog.NewTextHandler(&log, nil))
	faulty := false
	s.o.Confirm = func(publish.Refusal) publish.Confirmer {
		if faulty {
			return faultyConfirmer{}
		}
		return nil
	}
	w := watchingOf(t, s)
	turn := func(reason string) error {
		_, err := w.turn(t.Context(), reason)
		return err
	}
	if err := turn(starting); err != nil {
		t.Fatal(err)
	}
	faulty = true
	s.write(other)
	for range 2 {
		if e, ok := errors.AsType[*crash.Error](turn(hangup)); !ok || e.Value != "the confirmer is faulty" {
			t.Fatal(e)
		}
	}
	if got := log.String(); strings.Count(got, "event=internal-error") != 1 || !strings.Contains(got, "watch.faultyConfirmer.After") {
		t.Error(got)
	}
	if w.state.trusted() || !w.IsOpen() {
		t.Errorf("after a panic: state %d, the directory is open: %t", w.state, w.IsOpen())
	}
	if _, ok := errors.AsType[*publish.LockedError](New(s.o).Open()); !ok {
		t.Error("after a panic the watch has no lock")
	}
	faulty = false
	s.write(other)
	if err := turn(string(notify.Change)); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(s.o.Out, "cds", "cds.json")); err != nil || !strings.Contains(string(data), `"other"`) {
		t.Errorf("%s, %v", data, err)
	}
	if !strings.Contains(log.String(), "event=recovered") {
		t.Error(&log)
	}
}

// TestPanicOutsideReconcile checks that a watch goes on after a panic of its loop, here for a request to retry.
func TestPanicOutsideReconcile(t *testing.T) {
	s := newSite(t, web)
	log := &heard{more: make(chan struct{}, 1)}
	s.o.Log = event.New(slog.NewTextHandler(log, nil))
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Watch(ctx, []Options{s.o}, WatchOptions{
			Log: s.o.Log, Conflict: func(string, control.RetryHeld) string { panic("the comparison is faulty") },
		})
	}()
	log.wait(t, "event=published ")
	result, err := control.Retry(ctx, s.o.Out, control.RetryHeld{})
	if err != nil || result.Outcome != control.Failed || result.Message != "internal error: the comparison is faulty" {
		t.Errorf("%+v, %v", result, err)
	}
	log.wait(t, "event=internal-error error=\"internal error: the comparison is faulty\"")
	s.write(other)
	log.wait(t, "event=published ")
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestPanicOfWatcher checks that a watch ends with an error and an event if its Watcher panics: a watch that goes on
// would publish no change.
func TestPanicOfWatcher(t *testing.T) {
	s := newSite(t, web)
	log := &heard{more: make(chan struct{}, 1)}
	s.o.Log = event.New(slog.NewTextHandler(log, nil), func(r event.Record) {
		if _, ok := r.Event.(event.PathChanged); ok { // which the Watcher writes
			panic("the sink is faulty")
		}
	})
	ended := make(chan error, 1)
	go func() { ended <- Watch(t.Context(), []Options{s.o}, WatchOptions{Log: s.o.Log}) }()
	log.wait(t, "event=published ")
	s.write(other)
	if e, ok := errors.AsType[*crash.Error](<-ended); !ok || e.Value != "the sink is faulty" {
		t.Error(e)
	}
	log.wait(t, "event=internal-error error=\"internal error: the sink is faulty\"")
}

// TestPanicOfPublisher checks that a panic of the first reading is an event and the error of the watch.
func TestPanicOfPublisher(t *testing.T) {
	s := newSite(t, web)
	var log bytes.Buffer
	s.o.Log = event.New(slog.NewTextHandler(&log, nil), func(r event.Record) {
		if _, ok := r.Event.(event.Watching); ok {
			panic("the sink is faulty")
		}
	})
	err := Watch(t.Context(), []Options{s.o}, WatchOptions{Log: s.o.Log})
	if e, ok := errors.AsType[*crash.Error](err); !ok || e.Value != "the sink is faulty" || !strings.Contains(log.String(), "event=internal-error") {
		t.Errorf("%v\n%s", err, &log)
	}
}
