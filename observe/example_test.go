package observe_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"xdspub/event"
	"xdspub/observe"
	"xdspub/watch/control"
)

// An Observer is ready once a snapshot is out.
func Example() {
	o := observe.New(observe.Options{Version: "1.0.0"})
	log := event.New(slog.DiscardHandler, o.Event)
	server := httptest.NewServer(o.Handler())
	defer server.Close()
	ready := func() {
		r, err := http.Get(server.URL + "/readyz?verbose")
		if err != nil {
			panic(err)
		}
		defer r.Body.Close()
		body, _ := io.ReadAll(r.Body)
		fmt.Printf("%d %s", r.StatusCode, body)
	}
	o.Tell("", control.Watch{})
	ready()
	log.Write(event.Published{Snapshot: "v1"})
	o.Tell("", control.Watch{Snapshot: "v1", Acknowledged: true})
	ready()
	// Output:
	// 503 not ready
	// [-]source
	// source: nothing is published
	// 200 ok
	// [+]source
}
