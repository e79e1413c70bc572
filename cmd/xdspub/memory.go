package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// holdLess has the garbage collector let the heap grow by that percentage, not to the double, before
// it collects: a watch is idle for most of its life, and what it holds counts all the time. A server
// has more to do. GOGC says otherwise.
func holdLess(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

const (
	// smallHeap is the memory of the program that is not worth a collection.
	smallHeap = 56 << 20
	// lateGrowth is the percentage by which a heap that is larger grows before it is collected.
	lateGrowth = 40
)

// collectLate has the garbage collector leave a small heap alone, and collect a large one more often: of what
// a command reads it holds nearly all until it ends, so that early collections free little. GOGC and
// GOMEMLIMIT say otherwise.
var collectLate = sync.OnceFunc(func() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(-1)
	limit := debug.SetMemoryLimit(smallHeap)
	runtime.AddCleanup(new([2]*int), func(limit int64) { // once the first collection has ended
		debug.SetGCPercent(lateGrowth)
		debug.SetMemoryLimit(limit)
	}, limit)
})
