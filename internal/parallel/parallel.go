// Package parallel runs calls side by side, with a result that does not depend on timing.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"

	"xdspub/internal/crash"
)

// Run calls f for 0 … n-1 on as many goroutines as cores, until the number of errors reaches most; f
// returns its number of errors. Run returns the number of first calls that led to the limit. Results of
// later calls must be dropped, so that the result does not depend on timing. If calls panic, Run panics with the
// *crash.Error of the first of them.
func Run(n, most int, f func(i int) (errors int)) (count int) {
	var (
		mu    sync.Mutex
		met   map[int]int // errors of the calls that are done and not counted
		total int
		wg    sync.WaitGroup
		next  atomic.Int64

		crashed   *crash.Error // of the call crashedAt
		crashedAt int
	)
	fail := func(i int, e *crash.Error) {
		mu.Lock()
		defer mu.Unlock()
		if crashed == nil || i < crashedAt {
			crashed, crashedAt = e, i
		}
	}
	done := func(i, errors int) (enough bool) {
		mu.Lock()
		defer mu.Unlock()
		if i != count {
			if met == nil {
				met = make(map[int]int)
			}
			met[i] = errors
			return total >= most
		}
		for ok := true; ok && total < most; errors, ok = met[count] {
			delete(met, count)
			total += errors
			count++
		}
		return total >= most
	}
	work := func() {
		for enough := false; !enough; {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			if e := crash.Try(func() { enough = done(i, f(i)) }); e != nil {
				fail(i, e)
				return
			}
		}
	}
	for range min(runtime.GOMAXPROCS(0), n) - 1 {
		wg.Go(work)
	}
	work() // one alone needs no goroutine
	wg.Wait()
	if crashed != nil {
		panic(crashed)
	}
	return count
}
