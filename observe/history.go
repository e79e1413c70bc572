package observe

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"xdspub/event"
)

const (
	// mostEvents and mostEventBytes bound the remembered events.
	mostEvents     = 10_000
	mostEventBytes = 8 << 20
	// mostEventSize is the largest size of a remembered event, in bytes of JSON.
	mostEventSize = 64 << 10
)

// history remembers the last events as JSON, numbered from 1.
type history struct {
	boot string // distinguishes the numbers of this process from those of another one

	mu    sync.Mutex
	first uint64 // number of lines[0]
	lines []line
	bytes int
	more  chan struct{} // closed by the next event
}

// line is an event.
type line struct {
	name string
	json []byte
}

func newHistory() *history {
	return &history{boot: strconv.FormatInt(time.Now().UnixMilli(), 36), first: 1, more: make(chan struct{})}
}

// add adds an event.
func (h *history) add(r event.Record) {
	text, err := r.JSON(mostEventSize)
	if err != nil {
		return
	}
	l := line{event.KindOf(r.Event).Name, text}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, l)
	h.bytes += len(l.json)
	drop := 0
	for len(h.lines)-drop > mostEvents || h.bytes > mostEventBytes {
		h.bytes -= len(h.lines[drop].json)
		drop++
	}
	h.lines = h.lines[drop:]
	h.first += uint64(drop)
	close(h.more)
	h.more = make(chan struct{})
}

// since returns the remembered events after number n, and the number of the first of them. more is closed when there
// is another event.
func (h *history) since(n uint64) (first uint64, lines []line, more <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first = max(n+1, h.first)
	if end := h.first + uint64(len(h.lines)); first < end {
		lines = h.lines[first-h.first:]
	}
	return first, lines[:len(lines):len(lines)], h.more
}

// last returns the number of the last event; 0 for none.
func (h *history) last() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.first + uint64(len(h.lines)) - 1
}

// id returns the id of an event for clients.
func (h *history) id(n uint64) string { return h.boot + "-" + strconv.FormatUint(n, 10) }

// parse returns the number in an id; not ok if another process has made the id.
func (h *history) parse(id string) (n uint64, ok bool) {
	boot, text, _ := strings.Cut(id, "-")
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil && boot == h.boot && n <= h.last()
}
