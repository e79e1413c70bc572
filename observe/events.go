package observe

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"xdspub/event"
)

const (
	// mostStreams is the number of event streams at a time.
	mostStreams = 100
	// heartbeat is the interval of comments on a quiet stream, which show a proxy and the client that it is open.
	heartbeat = 15 * time.Second
	// patience is the time in which a client must read what was sent.
	patience = 30 * time.Second
	// atOnce is the number of events written at a time.
	atOnce = 100
)

// serveEvents serves /api/v1/events: the remembered events, then each event when it happens, until the client leaves.
// A client that comes back sends the id of its last event as Last-Event-ID, or as the parameter since, and gets the
// later events. since=now leaves out the remembered events. event=NAME, which may be repeated, selects events.
// name=message leaves out the names of the events, so that an EventSource passes all of them to onmessage.
func (o *Observer) serveEvents(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead { // has no stream
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	if o.streams.Add(1) > mostStreams {
		o.streams.Add(-1)
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d streams of events are open, which is the limit", mostStreams), http.StatusServiceUnavailable)
		return
	}
	defer o.streams.Add(-1)
	deadlines := http.NewResponseController(w)
	_ = deadlines.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx must not collect the events
	s := stream{history: o.events, w: w, control: deadlines, only: r.URL.Query()["event"],
		unnamed: r.URL.Query().Get("name") == "message"}
	since := r.Header.Get("Last-Event-ID")
	if since == "" {
		since = r.URL.Query().Get("since")
	}
	switch n, ok := s.history.parse(since); {
	case since == "now":
		s.sent = s.history.Last()
	case ok:
		s.sent = n
	case since != "":
		fmt.Fprint(&s.text, ": this process has no such event, and sends the events that it remembers\n\n")
	}
	s.run(r)
}

// stream is one stream of events.
type stream struct {
	history *history
	w       http.ResponseWriter
	control *http.ResponseController
	only    []string // names of the events; empty for all
	unnamed bool     // send no names
	sent    uint64   // number of the last event that was sent or left out
	text    bytes.Buffer
}

// run sends events until the client leaves, or does not read.
func (s *stream) run(r *http.Request) {
	fmt.Fprintf(&s.text, "retry: 2000\n\n")
	ticks := time.NewTicker(heartbeat)
	defer ticks.Stop()
	for {
		first, lines, more := s.history.Since(s.sent)
		if missed := first - s.sent - 1; missed > 0 {
			fmt.Fprintf(&s.text, ": %d events are forgotten\n\n", missed)
		}
		s.sent = first - 1
		for batch := range slices.Chunk(lines, atOnce) {
			for _, l := range batch {
				s.sent++
				s.add(l)
			}
			if !s.flush() {
				return
			}
		}
		if s.text.Len() > 0 && !s.flush() {
			return
		}
		select {
		case <-more:
		case <-ticks.C:
			s.text.WriteString(":\n\n")
		case <-r.Context().Done():
			return
		}
	}
}

// add adds an event to the text.
func (s *stream) add(l event.Line) {
	if len(s.only) == 0 || slices.Contains(s.only, l.Name) {
		name := "event: " + l.Name + "\n"
		if s.unnamed {
			name = ""
		}
		fmt.Fprintf(&s.text, "id: %s\n%sdata: %s\n\n", s.history.id(s.sent), name, strings.ReplaceAll(string(l.JSON), "\n", " "))
	}
}

// flush sends the text. It returns false if the client has left or does not read.
func (s *stream) flush() bool {
	_ = s.control.SetWriteDeadline(time.Now().Add(patience))
	if s.text.Len() == 0 {
		return true
	}
	_, err := s.w.Write(s.text.Bytes())
	s.text.Reset()
	return err == nil && s.control.Flush() == nil
}
