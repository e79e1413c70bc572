package turns

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// work runs n goroutines that work for a client, each for d at a time, until end is closed. used returns how
// long they have worked.
func work(c *Client, n int, d time.Duration, end <-chan struct{}, running *sync.WaitGroup) (used func() time.Duration) {
	var turns atomic.Int64
	for range n {
		running.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				turn, _ := c.Take(context.Background())
				time.Sleep(d)
				turn.Give()
				turns.Add(1)
			}
		})
	}
	return func() time.Duration { return time.Duration(turns.Load()) * d }
}

// TestFair checks that clients with constant work get the same time, whatever the number of their goroutines
// and the length of their turns. A client with little work waits only for running turns.
func TestFair(t *testing.T) {
	for _, most := range []int{1, 3} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := New(most)
				end := make(chan struct{})
				var running sync.WaitGroup
				many := work(all.Client("many"), 1000, 10*time.Millisecond, end, &running)
				long := work(all.Client("long"), 10, 40*time.Millisecond, end, &running)
				short := work(all.Client("short"), 10, time.Millisecond, end, &running)
				time.Sleep(10*time.Second + time.Microsecond)
				for range 100 {
					began := time.Now()
					turn, _ := all.Client("honest").Take(t.Context())
					if d := time.Since(began); d > 51*time.Millisecond {
						t.Errorf("waited %v", d)
					}
					time.Sleep(time.Millisecond)
					turn.Give()
					time.Sleep(77 * time.Millisecond)
				}
				times := []time.Duration{many(), long(), short()}
				close(end)
				running.Wait()
				for _, a := range times {
					if a < times[0]*9/10 || a > times[0]*11/10 {
						t.Errorf("the clients have had %v", times)
					}
				}
			})
		})
	}
}

// TestForgets checks that the memory doesn't grow with the number of clients over time.
func TestForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(1)
		var running sync.WaitGroup
		end := make(chan struct{})
		work(all.Client("busy"), 2, time.Millisecond, end, &running) // some client always waits
		most := 0
		for i := range 10_000 {
			turn, _ := all.Client(fmt.Sprint(i)).Take(t.Context())
			time.Sleep(time.Millisecond)
			turn.Give()
			all.mu.Lock()
			most = max(most, len(all.clients))
			all.mu.Unlock()
		}
		close(end)
		running.Wait()
		if most > 300 || len(all.clients) != 0 || all.taken != 0 {
			t.Errorf("%d clients were known at a time, %d in the end, which have %d turns", most, len(all.clients), all.taken)
		}
	})
}

// TestNoTurns checks that a nil Client gets a turn at once.
func TestNoTurns(t *testing.T) {
	turn, err := Of(t.Context()).Take(t.Context())
	if turn.Give(); err != nil {
		t.Error(err)
	}
	c := New(1).Client("a")
	if Of(With(t.Context(), c)) != c {
		t.Error("a context loses its client")
	}
}

// TestLeave checks that Take ends with its context, and that a turn that comes at the same time isn't lost.
func TestLeave(t *testing.T) {
	for range 100 { // the turn comes before ctx ends, or after
		synctest.Test(t, func(t *testing.T) {
			all := New(1)
			turn, _ := all.Client("a").Take(t.Context())
			gone := errors.New("the client is gone")
			ctx, end := context.WithCancelCause(t.Context())
			var waiting sync.WaitGroup
			for range 10 {
				waiting.Go(func() {
					turn, err := all.Client("b").Take(ctx)
					if turn.Give(); err != nil && err != gone {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			waiting.Go(func() { end(gone) })
			turn.Give()
			waiting.Wait()
			if all.taken != 0 || len(all.waiting) != 0 || len(all.clients) != 0 {
				t.Errorf("%d turns are taken, %d clients wait", all.taken, len(all.waiting))
			}
		})
	}
}
