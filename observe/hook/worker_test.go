package hook

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"xdspub/event"
)

// faulty is a receiver with a bug.
type faulty struct{ sent *int }

func (f faulty) send(context.Context, item) error { *f.sent++; panic("a bug") }

func (faulty) failed(err error, lost int) event.Event {
	return event.HookFailed{Error: err, Lost: lost}
}

func (faulty) String() string { return "faulty" }

// TestPanic: a panic of a hook is one event, even if the hook gets this event and panics again. The process goes on.
func TestPanic(t *testing.T) {
	var mu sync.Mutex
	count := make(map[string]int)
	lost, sent := 0, 0
	h := &Hooks{times: Times{}.withDefaults(), closing: make(chan struct{})}
	h.add(nil, faulty{&sent})
	log := event.New(slog.DiscardHandler, h.Event, func(r event.Record) {
		mu.Lock()
		defer mu.Unlock()
		count[event.KindOf(r.Event).Name]++
		if failed, ok := r.Event.(event.HookFailed); ok {
			lost += failed.Lost
		}
	})
	h.Start(log)
	for range 3 {
		log.Write(event.SourceValid{})
	}
	h.Close()
	if sent != 4 || lost != 4 || count["internal-error"] != 1 || count["source-valid"] != 3 {
		t.Errorf("%d sent, %d lost, events %v", sent, lost, count)
	}
}
