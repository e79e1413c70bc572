package store

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"xdspub/event"
	"xdspub/tools/envoytest"
)

// events collects events.
type events struct {
	mu   sync.Mutex
	list []event.Event
}

func (e *events) add(r event.Record) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, r.Event)
}

func (e *events) all() []event.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.list)
}

// wait waits for an event.
func (e *events) wait(t testing.TB, is func(event.Event) bool) {
	t.Helper()
	envoytest.Eventually(t, patience, "the event", func() (bool, string) {
		e.mu.Lock()
		defer e.mu.Unlock()
		return slices.ContainsFunc(e.list, is), fmt.Sprintf("%+v", e.list)
	})
}

// discard is a handler that writes nothing.
type discard struct{ slog.Handler }

func (discard) Enabled(context.Context, slog.Level) bool { return false }

func TestMain(m *testing.M) {
	maxPause, lookAgain, beatEvery, spread = 2*time.Second, 2*time.Second, 2*time.Second, 100*time.Millisecond
	checkEvery = 50 * time.Millisecond
	m.Run()
}
