package rest

import "sync"

const (
	// mostWaits is how many requests wait at one time. Beyond them a client gets its 304 at once.
	mostWaits = 10_000
	// mostWaitsOfClient is how many of them are of one client. By HTTP/1.1 each takes Envoy a
	// connection; by default it has no more than 1,024 of them, and no more requests.
	mostWaitsOfClient = 100
)

// waits counts the requests that wait.
type waits struct {
	mu       sync.Mutex
	all      int
	byClient map[string]int
}

// begin counts a request that begins to wait, and returns false where there are too many.
func (w *waits) begin(client string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all >= mostWaits || w.byClient[client] >= mostWaitsOfClient {
		return false
	}
	if w.byClient == nil {
		w.byClient = make(map[string]int)
	}
	w.all++
	w.byClient[client]++
	return true
}

// end is for each begin that returned true.
func (w *waits) end(client string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all--
	if w.byClient[client]--; w.byClient[client] == 0 {
		delete(w.byClient, client)
	}
}
