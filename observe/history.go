package observe

import (
	"strconv"
	"strings"
	"time"

	"xdspub/event"
)

// remembered bounds the remembered events.
var remembered = event.HistoryLimits{Events: 10_000, Bytes: 8 << 20, Size: 64 << 10}

// history remembers the last events, with an id for each.
type history struct {
	*event.History
	boot string // distinguishes the numbers of this process from those of another one
}

func newHistory() *history {
	return &history{event.NewHistory(remembered), strconv.FormatInt(time.Now().UnixMilli(), 36)}
}

// id returns the id of an event for clients.
func (h *history) id(n uint64) string { return h.boot + "-" + strconv.FormatUint(n, 10) }

// parse returns the number in an id; not ok if another process has made the id.
func (h *history) parse(id string) (n uint64, ok bool) {
	boot, text, _ := strings.Cut(id, "-")
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil && boot == h.boot && n <= h.Last()
}
