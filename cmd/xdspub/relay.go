package main

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"xdspub/event"
	"xdspub/serve"
	"xdspub/serve/admit"
	"xdspub/source/load"
	"xdspub/source/upstream"
)

// aggregateFields returns the fields of --aggregate-by; nil for none.
func aggregateFields(v *call) (list []admit.NodeField, err error) {
	for _, text := range v.AggregateBy.Value {
		f, err := admit.ParseNodeField(text)
		if err != nil {
			return nil, v.AggregateBy.Invalid(text, err.Error())
		}
		if slices.Contains(list, f) {
			return nil, v.AggregateBy.Invalid(text, "it is given twice")
		}
		list = append(list, f)
	}
	switch {
	case len(list) == 0:
		return nil, nil
	case v.Out.Value != "":
		return nil, usagef("--aggregate-by and --out exclude each other, because files are for one node, and each aggregate has its own: " +
			"keep the snapshots of the aggregates with --state DIR, and write files with xdspub watch --out DIR and the node of their Envoy")
	}
	return list, nil
}

// mostRelayed bounds the bytes of the resources that the control plane sends for all aggregates together.
const mostRelayed = 4 * load.MaxTotal

// relay follows the control plane for the aggregates of a server.
type relay struct {
	v      call // a copy, because the watch of the own aggregate replaces its call when the settings change
	source string
	states *stateDirs

	mu        sync.Mutex
	receivers map[int]receiver // of each aggregate, by a number
	next      int              // the number of the next receiver
}

// receiver has the channels by which an aggregate gets the signals of the process.
type receiver struct{ hangup, report chan os.Signal }

// newRelay returns a relay. most is the largest number of aggregates.
func newRelay(v *call, source string, most int) *relay {
	return &relay{v: *v, source: source, states: newStateDirs(v.State.Value, most), receivers: make(map[int]receiver)}
}

// pass passes signals on to all aggregates until ctx ends.
func (r *relay) pass(ctx context.Context, asked signals) {
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-asked.hangup:
			r.toAll(func(to receiver) chan os.Signal { return to.hangup }, s)
		case s := <-asked.report:
			r.toAll(func(to receiver) chan os.Signal { return to.report }, s)
		}
	}
}

func (r *relay) toAll(channel func(receiver) chan os.Signal, s os.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, to := range r.receivers {
		select {
		case channel(to) <- s:
		default: // a signal waits for the watch already
		}
	}
}

// signals returns the signals for an aggregate. After leave, no signal follows.
func (r *relay) signals() (s signals, leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	to, number := receiver{make(chan os.Signal, 1), make(chan os.Signal, 1)}, r.next
	r.receivers[number] = to
	r.next++
	return signals{to.hangup, to.report}, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.receivers, number)
	}
}

// afterFailure is the pause after a watch that could not begin.
const afterFailure = 10 * time.Second

// follow serves an aggregate until ctx ends.
func (r *relay) follow(ctx context.Context, a *serve.Aggregate) {
	asked, leave := r.signals()
	defer leave()
	v := r.v
	v.aggregate = a
	v.upstream.Node, v.upstream.Log = a.Node(), a.Log()
	if o := observersOf(&v); o != nil {
		defer o.Removed("")
	}
	for ctx.Err() == nil {
		err := r.followOnce(ctx, &v, asked)
		if err == nil || ctx.Err() != nil {
			return
		}
		a.Log().Write(event.Failed{Error: err, Reason: "start"})
		select {
		case <-time.After(afterFailure):
		case <-ctx.Done():
		}
	}
}

// followOnce serves the aggregate of v until ctx ends, or until the watch can't begin.
func (r *relay) followOnce(ctx context.Context, v *call, asked signals) error {
	state, leave, err := r.states.enter(ctx, v.aggregate.Key())
	if err != nil {
		return err
	}
	defer func() {
		if err := leave(); err != nil {
			v.aggregate.Log().Write(event.Failed{Error: err, Reason: "end"})
		}
	}()
	v.remote = upstream.New(v.upstream)
	all, err := servedOptions(v, r.source, v.aggregate.Log())
	if err != nil {
		return err
	}
	all[0].Server, all[0].State = v.aggregate, state
	return watchUntil(ctx, v, all, servedOptions, asked)
}
