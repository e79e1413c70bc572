package watch

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestDebouncer(t *testing.T) {
	const ms = time.Millisecond
	// every is n events, one each d.
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
		events          []time.Duration
		want            []time.Duration
	}{
		{"none", 100 * ms, 2000 * ms, nil, nil},
		{"one", 100 * ms, 2000 * ms, []time.Duration{0}, []time.Duration{100 * ms}},
		{"each prolongs", 100 * ms, 2000 * ms, []time.Duration{0, 60 * ms, 150 * ms}, []time.Duration{250 * ms}},
		{"two bursts", 100 * ms, 2000 * ms, []time.Duration{0, 300 * ms, 390 * ms}, []time.Duration{100 * ms, 490 * ms}},
		// 50 events over 2.5 s are never quiet: the first 40 end by the delay.
		{"long burst", 100 * ms, 2000 * ms, every(51*ms, 50), []time.Duration{2000 * ms, 2599 * ms}},
		{"endless", 100 * ms, 2000 * ms, every(51*ms, 160), []time.Duration{2000 * ms, 4040 * ms, 6080 * ms, 8120 * ms}},
		{"delay below quiet", 100 * ms, 70 * ms, every(51*ms, 3), []time.Duration{70 * ms, 172 * ms}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				events := make(chan struct{})
				go func() {
					for _, at := range tt.events {
						time.Sleep(at - time.Since(start)) // the bubble's clock
						events <- struct{}{}
					}
					time.Sleep(time.Hour)
					close(events)
				}()
				d := newDebouncer(tt.quiet, tt.maxDelay)
				var got []time.Duration
				for open := true; open; {
					select {
					case _, open = <-events:
						if open {
							d.event()
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
