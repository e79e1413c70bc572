package hook_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"xdspub/event"
	"xdspub/observe/hook"
)

// A webhook gets the events that it selects.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Println(r.Header.Get("X-Xdspub-Event"), len(body) > 0)
	}))
	defer server.Close()
	webhook, err := hook.ParseWebhook("published,warn=" + server.URL)
	if err != nil {
		panic(err)
	}
	hooks := hook.New(hook.Options{Webhooks: []hook.Webhook{webhook}})
	log := event.New(slog.DiscardHandler, hooks.Event)
	hooks.Start(log)
	log.Write(event.SourceValid{})
	log.Write(event.Published{Snapshot: "v1"})
	hooks.Close()
	// Output: published true
}
