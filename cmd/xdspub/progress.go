package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// showProgress tells a person at a terminal what is being done. The function that it returns
// ends that; until then nothing else is printed.
func showProgress(c *call, what string) (end func()) {
	if w := c.App.ErrWriter; !c.Quiet.Value && isTerminal(w) {
		return writeProgress(w, what)
	}
	return func() {}
}

// writeProgress writes what is being done, and for how long, each second from the first one on,
// until the function that it returns removes that.
func writeProgress(w io.Writer, what string) (end func()) {
	var mu sync.Mutex
	var shown, ended bool
	start := time.Now()
	mu.Lock()
	defer mu.Unlock()
	var timer *time.Timer
	timer = time.AfterFunc(time.Second, func() {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			fmt.Fprintf(w, "\r%s … %.0f s", what, time.Since(start).Seconds())
			shown = true
			timer.Reset(time.Second)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		timer.Stop()
		if ended = true; shown {
			fmt.Fprint(w, "\r\x1b[K")
		}
	}
}
