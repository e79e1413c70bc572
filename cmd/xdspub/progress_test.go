package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgress checks that writeProgress writes nothing in the first second, and that end removes the line.
func TestProgress(t *testing.T) {
	for took, want := range map[time.Duration]string{
		900 * time.Millisecond:  "",
		2500 * time.Millisecond: "\rchecking src … 1 s\rchecking src … 2 s\r\x1b[K",
	} {
		synctest.Test(t, func(t *testing.T) {
			var w strings.Builder
			end := writeProgress(&w, "checking src")
			time.Sleep(took)
			end()
			time.Sleep(time.Minute)
			if w.String() != want {
				t.Errorf("after %v: %q, want %q", took, w.String(), want)
			}
		})
	}
}
