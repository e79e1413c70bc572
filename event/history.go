package event

import "sync"

// History remembers the last events as JSON, numbered from 1. A History is safe for concurrent use.
type History struct {
	limits HistoryLimits

	mu    sync.Mutex
	first uint64 // number of lines[0]
	lines []Line
	bytes int
	more  chan struct{} // closed by the next event
}

// HistoryLimits bound a History.
type HistoryLimits struct {
	// Events and Bytes bound the remembered events.
	Events, Bytes int
	// Size is the largest size of a remembered event, in bytes of JSON.
	Size int
}

// Line is a remembered event.
type Line struct {
	Name string
	JSON []byte
}

// NewHistory returns an empty History.
func NewHistory(l HistoryLimits) *History {
	return &History{limits: l, first: 1, more: make(chan struct{})}
}

// Add adds an event.
func (h *History) Add(r Record) {
	text, err := r.JSON(h.limits.Size)
	if err != nil {
		return
	}
	l := Line{KindOf(r.Event).Name, text}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, l)
	h.bytes += len(l.JSON)
	drop := 0
	for len(h.lines)-drop > h.limits.Events || h.bytes > h.limits.Bytes {
		h.bytes -= len(h.lines[drop].JSON)
		drop++
	}
	h.lines = h.lines[drop:]
	h.first += uint64(drop)
	close(h.more)
	h.more = make(chan struct{})
}

// Since returns the remembered events after number n, and the number of the first of them. more is closed when there
// is another event.
func (h *History) Since(n uint64) (first uint64, lines []Line, more <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first = max(n+1, h.first)
	if end := h.first + uint64(len(h.lines)); first < end {
		lines = h.lines[first-h.first:]
	}
	return first, lines[:len(lines):len(lines)], h.more
}

// Last returns the number of the last event; 0 for none.
func (h *History) Last() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.first + uint64(len(h.lines)) - 1
}
