package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
)

// showProgress tells a person at a terminal what is being done, and for how long, once that
// takes longer than a second. The function that it returns ends this; until then nothing else is
// printed.
func showProgress(c *cli.Context, what string) (end func()) {
	w := c.App.ErrWriter
	if c.Bool("quiet") || !isTerminal(w) {
		return func() {}
	}
	start, done := time.Now(), make(chan struct{})
	var shows sync.WaitGroup
	shows.Go(func() {
		second := time.NewTicker(time.Second)
		defer second.Stop()
		for shown := false; ; shown = true {
			select {
			case <-second.C:
				fmt.Fprintf(w, "\r%s … %.0f s", what, time.Since(start).Seconds())
			case <-done:
				if shown {
					fmt.Fprint(w, "\r\x1b[K")
				}
				return
			}
		}
	})
	return func() {
		close(done)
		shows.Wait()
	}
}
