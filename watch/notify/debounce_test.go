package notify

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestDebouncer(t *testing.T) {
	const ms = time.Millisecond
	// every returns the times of n events at intervals of d.
	every := func(d time.Duration, n int) []time.Duration {
		var at []time.Duration
		for i := range n {
			at = append(at, time.Duration(i)*d)
		}
		return at
	}
	tests := []struct {
		name            string
		quiet, maxDelay time.Duration
		events          []time.Duration // times of events of one path
		whole           []time.Duration // times at which its change is complete
		others          []time.Duration // times of events of other paths
		want            []time.Duration
	}{
		{"none", 100 * ms, 2000 * ms, nil, nil, nil, nil},
		{"one", 100 * ms, 2000 * ms, []time.Duration{0}, nil, nil, []time.Duration{100 * ms}},
		{"each prolongs", 100 * ms, 2000 * ms, []time.Duration{0, 60 * ms, 150 * ms}, nil, nil, []time.Duration{250 * ms}},
		{"two bursts", 100 * ms, 2000 * ms, []time.Duration{0, 300 * ms, 390 * ms}, nil, nil, []time.Duration{100 * ms, 490 * ms}},
		// 50 events over 2.5 s leave no quiet period: MaxDelay ends the burst of the first 40.
		{"long burst", 100 * ms, 2000 * ms, every(51*ms, 50), nil, nil, []time.Duration{2000 * ms, 2599 * ms}},
		{"endless", 100 * ms, 2000 * ms, every(51*ms, 160), nil, nil, []time.Duration{2000 * ms, 4040 * ms, 6080 * ms, 8120 * ms}},
		{"delay below quiet", 100 * ms, 70 * ms, every(51*ms, 3), nil, nil, []time.Duration{70 * ms, 172 * ms}},
		{"whole", 100 * ms, 2000 * ms, []time.Duration{0}, []time.Duration{1 * ms}, nil, []time.Duration{6 * ms}},
		{"whole in pieces", 100 * ms, 2000 * ms, []time.Duration{0, 60 * ms, 120 * ms}, []time.Duration{121 * ms}, nil, []time.Duration{126 * ms}},
		{"written again", 100 * ms, 2000 * ms, []time.Duration{0, 3 * ms}, []time.Duration{1 * ms}, nil, []time.Duration{103 * ms}},
		{"each whole", 100 * ms, 2000 * ms, []time.Duration{0, 10 * ms}, []time.Duration{1 * ms, 11 * ms}, nil, []time.Duration{6 * ms, 16 * ms}},
		{"whole beside another", 100 * ms, 2000 * ms, []time.Duration{2 * ms}, []time.Duration{3 * ms}, []time.Duration{0}, []time.Duration{102 * ms}},
		{"whole, then another", 100 * ms, 2000 * ms, []time.Duration{0, 4 * ms}, []time.Duration{1 * ms, 5 * ms}, []time.Duration{2 * ms}, []time.Duration{104 * ms}},
		{"nothing whole", 100 * ms, 2000 * ms, nil, []time.Duration{0}, nil, nil},
		{"quiet below settling", 1 * ms, 2000 * ms, []time.Duration{0}, []time.Duration{0}, nil, []time.Duration{1 * ms}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				d := newDebouncer(tt.quiet, tt.maxDelay)
				type call struct {
					at   time.Duration
					call func()
				}
				var calls []call
				for _, at := range tt.events {
					calls = append(calls, call{at, func() { d.event("path") }})
				}
				for _, at := range tt.whole {
					calls = append(calls, call{at, func() { d.finish("path") }})
				}
				for i, at := range tt.others {
					calls = append(calls, call{at, func() { d.event(fmt.Sprint("other", i)) }})
				}
				slices.SortStableFunc(calls, func(a, b call) int { return cmp.Compare(a.at, b.at) })
				events := make(chan func())
				go func() {
					for _, c := range calls {
						time.Sleep(c.at - time.Since(start)) // the bubble's clock
						events <- c.call
					}
					time.Sleep(time.Hour)
					close(events)
				}()
				var got []time.Duration
				for open := true; open; {
					var call func()
					select {
					case call, open = <-events:
						if open {
							call()
						}
					case <-d.fire():
						d.end()
						got = append(got, time.Since(start))
					}
				}
				if !slices.Equal(got, tt.want) {
					t.Errorf("fired at %v, want %v", got, tt.want)
				}
			})
		})
	}
}
