package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// collectSooner makes the garbage collector run when the heap has grown by percent, unless GOGC is set. A watch is
// idle most of the time, so its memory counts more than the time of its collections.
func collectSooner(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

const (
	// smallHeap is the memory in bytes below which no collection runs.
	smallHeap = 56 << 20
	// lateGrowth is the percentage by which a larger heap grows between two collections.
	lateGrowth = 40
)

// collectLate delays the first collection until the program uses smallHeap, and then collects at a growth of
// lateGrowth. A command holds nearly all that it reads until its end, so early collections free little. The variables
// GOGC and GOMEMLIMIT take precedence.
var collectLate = sync.OnceFunc(func() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(-1)
	limit := debug.SetMemoryLimit(smallHeap)
	// The first collection frees this object and so runs the cleanup. The object holds pointers: the allocator may
	// keep a small object without pointers alive together with its neighbours.
	runtime.AddCleanup(new([2]*int), func(limit int64) {
		debug.SetGCPercent(lateGrowth)
		debug.SetMemoryLimit(limit)
	}, limit)
})
