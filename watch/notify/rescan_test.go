package notify

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestRescanPace checks that an idle rescan delays the next one in proportion to its cost, within bounds. A
// rescan with changes doesn't.
func TestRescanPace(t *testing.T) {
	for _, c := range []struct {
		name    string
		every   time.Duration
		cost    time.Duration
		nothing bool
		want    time.Duration
	}{
		{"little", 30 * time.Second, 10 * time.Millisecond, true, 30 * time.Second},
		{"more", 30 * time.Second, 100 * time.Millisecond, true, 200 * time.Second},
		{"very much", 30 * time.Second, time.Minute, true, maxRescan},
		{"a rescan of its own is rarer", time.Hour, time.Minute, true, time.Hour},
		{"something was found", 30 * time.Second, time.Minute, false, 30 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, err := New(t.Context(), t.TempDir(), Options{Rescan: c.every, Poll: 10 * time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				var used atomic.Int64
				w.rescan.used = func() time.Duration { return time.Duration(used.Load()) }
				go w.Run(t.Context())
				next := func() time.Duration {
					start := time.Now()
					if got := <-w.Signals(); got != Rescan {
						t.Fatalf("a signal %q", got)
					}
					return time.Since(start)
				}
				quiet := w.burst.quiet
				if first := next(); first != c.every+quiet {
					t.Errorf("the first rescan comes after %v", first)
				}
				used.Add(int64(c.cost))
				if c.nothing {
					w.FoundNothing()
				}
				want := c.want
				if want > c.every { // counted from the end of the last rescan, not from its start
					want += quiet
				}
				if wait := next(); wait != want {
					t.Errorf("the next rescan comes after %v, want %v", wait, want)
				}
				if wait := next(); wait != c.every { // no FoundNothing follows this rescan
					t.Errorf("the one after that comes after %v, want %v", wait, c.every)
				}
			})
		})
	}
}

// TestRescanInTheMidst checks a rescan after an editor has moved a file away, which loses the event for that.
// No signal comes before the file is back.
func TestRescanInTheMidst(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	write := func() {
		if err := os.WriteFile(file, []byte("name: a"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write()
	w, err := New(t.Context(), filepath.Dir(file), Options{Rescan: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file, file+"~"); err != nil {
		t.Fatal(err)
	}
	w.look(t.Context()) // before Run receives the event
	select {
	case r := <-w.Signals():
		t.Fatalf("a signal %q while the file is away", r)
	default:
	}
	write()
	go w.Run(t.Context())
	if r := <-w.Signals(); r != Change {
		t.Errorf("a signal %q", r)
	}
}
