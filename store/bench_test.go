package store

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"xdspub/event"
	"xdspub/tools/etcdtest"
)

// BenchmarkFleet edits one of 1,000 clusters, and measures the time until 100 machines have the edit. This process runs
// the writer and the machines.
func BenchmarkFleet(b *testing.B) {
	const machines = 100
	s := etcdtest.Start(b)
	o := Options{Address: Address{Endpoints: []string{s.Endpoint}, Prefix: "/test"}}
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	options := WriterOptions{Options: o, By: "me@here"}
	w := &targetWriter{
		options: options, keys: o.Address.keys(""), log: event.New(discard{}), news: make(chan struct{}, 1), writer: NewWriter(options), now: time.Now,
	}
	w.wanted.Store(many(1000))
	running.Go(func() { w.run(ctx) })
	var list []*Follower
	for range machines {
		f := NewFollower(FollowerOptions{Options: o})
		running.Go(func() { f.Run(ctx) })
		list = append(list, f)
	}
	arrive := func(n uint64) (at []time.Time) {
		at = make([]time.Time, len(list))
		for i, f := range list {
			for {
				if c, err := f.Read(ctx); err == nil && c.N >= n {
					at[i] = time.Now()
					break
				}
				<-f.Changed()
			}
		}
		return at
	}
	arrive(1)
	var took []time.Duration
	n := uint64(1)
	for b.Loop() {
		n++
		begin := time.Now()
		w.wanted.Store(edited(many(1000), 1, int(n)))
		w.news <- struct{}{}
		for _, t := range arrive(n) {
			took = append(took, t.Sub(begin))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Milliseconds()), "p99-ms")
}
