package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"xdspub/internal/crash"
)

// showProgress shows the current work on standard error until end is called, if that is a terminal. The caller
// prints nothing to it before end.
func showProgress(c *call, what string) (end func()) {
	if w := c.App.ErrWriter; !c.Quiet.Value && isTerminal(w) {
		return writeProgress(w, what)
	}
	return func() {}
}

// writeProgress writes the current work with its duration, each second after the first, until end removes the
// line.
func writeProgress(w io.Writer, what string) (end func()) {
	var mu sync.Mutex
	var shown, ended bool
	start := time.Now()
	mu.Lock()
	defer mu.Unlock()
	var timer *time.Timer
	timer = time.AfterFunc(time.Second, crash.Guard(func() {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			fmt.Fprintf(w, "\r%s … %.0f s", what, time.Since(start).Seconds())
			shown = true
			timer.Reset(time.Second)
		}
	}, func(*crash.Error) {})) // the work goes on without its progress
	return func() {
		mu.Lock()
		defer mu.Unlock()
		timer.Stop()
		if ended = true; shown {
			fmt.Fprint(w, "\r\x1b[K")
		}
	}
}
