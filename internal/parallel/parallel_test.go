package parallel_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"xdspub/internal/crash"
	"xdspub/internal/parallel"
)

// TestRun compares the count with the count of calls that run one after the other.
func TestRun(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		errors := make([]int, r.IntN(50))
		for i := range errors {
			errors[i] = max(0, r.IntN(8)-4)
		}
		most := 1 + r.IntN(20)
		want, total := 0, 0
		for want < len(errors) && total < most {
			total += errors[want]
			want++
		}
		var calls atomic.Int64
		got := parallel.Run(len(errors), most, func(i int) int {
			calls.Add(1)
			return errors[i]
		})
		if got != want || calls.Load() < int64(want) {
			t.Errorf("seed %d: %d of %d calls count, want %d", seed, got, calls.Load(), want)
		}
	}
}

func ExampleRun() {
	counted := parallel.Run(100, 2, func(i int) (errors int) { return i % 2 })
	fmt.Println(counted) // the calls 0 to 3 have two errors
	// Output: 4
}

// TestPanics checks that Run and Group hand a panic on to their caller, and end all goroutines before.
func TestPanics(t *testing.T) {
	faulty := func(i int) int {
		if i%10 == 3 {
			panic(fmt.Sprint("call ", i))
		}
		return 0
	}
	for range 100 {
		err := func() (err error) {
			defer crash.Catch(&err)
			parallel.Run(1000, 1, faulty)
			return nil
		}()
		if err == nil || err.Error() != "internal error: call 3" {
			t.Fatal(err)
		}
	}
	var ended atomic.Int64
	err := func() (err error) {
		defer crash.Catch(&err)
		var g parallel.Group
		for i := range 10 {
			g.Go(func() { defer ended.Add(1); faulty(i) })
		}
		g.Wait()
		return nil
	}()
	if err == nil || err.Error() != "internal error: call 3" || ended.Load() != 10 {
		t.Error(err, ended.Load())
	}
}
