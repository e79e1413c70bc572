package validate

import (
	"context"
	"time"

	"xdspub/xds"
)

// worker judges resources on one goroutine.
type worker struct {
	answers *answers
	to      dispatcher
	after   []*Rule // the rules with Resource
	watch   stopwatch
	keep    bool // keep the results for the next Run
	notes   notes
	// The fields below are used again for each resource.
	lookup LookupPass
	later  []reported
	empty  *findings
}

func newWorker(a *answers, rules []*Rule, keep bool) *worker {
	w := &worker{answers: a, to: newDispatcher(rules, a.options.envoy()), watch: a.options.Timings.stopwatch(), keep: keep}
	w.notes.calls = newCalls(a.options)
	for _, r := range rules {
		if r.Resource != nil {
			w.after = append(w.after, r)
		}
	}
	return w
}

// room returns an empty findings that has room for as many findings as part.
func (w *worker) room(part *findings) *findings {
	if w.empty == nil || !w.empty.empty() { // the caller has kept findings that are not empty
		w.empty = new(findings)
	}
	*w.empty = findings{part.always.Rest(), part.unused.Rest()}
	return w.empty
}

// pass returns the view of rules of a resource. It is valid until the next call of pass.
func (w *worker) pass(r *xds.Resource, into *findings) *LookupPass {
	var recorder *notes
	if w.keep {
		recorder = &w.notes
	}
	known := w.lookup.memo
	if clear(known); known == nil {
		known = make(memo)
	}
	w.lookup = w.answers.pass(w.answers.options, recorder, into)
	w.lookup.Resource, w.lookup.memo = r, known
	return &w.lookup
}

// judged returns the findings and the lookups of the rules since the last call of judged, as the result of a
// resource.
func (w *worker) judged(r *xds.Resource, after bool, gathered []Occurrence, into *findings) *judged {
	j := &judged{of: r, after: after, asked: w.notes.list(), seldom: never}
	calls := w.notes.calls.take()
	if !into.empty() || gathered != nil || calls != nil || !w.notes.until.IsZero() {
		j.seldom = &seldom{gathered: gathered, calls: calls, until: w.notes.until}
		if !into.empty() {
			j.findings = into
		}
	}
	w.notes.until = time.Time{}
	return j
}

// walk judges one resource by the rules for its messages. The result is incomplete if ctx ends. If w keeps no
// results, the result of a resource without findings and collected messages is nil.
func (w *worker) walk(ctx context.Context, r *xds.Resource, into *findings) *judged {
	var gathered []Occurrence
	p := w.pass(r, into)
	defer func() { handOn(recover(), p.rule, r) }()
	w.later = w.later[:0]
	p.later = &w.later
	err := r.Walk(ctx, func(n *xds.Node) {
		audience := w.to.audience(n)
		for _, rule := range audience.everywhere {
			p.begin(rule)
			start := w.watch.start()
			rule.node(p, n)
			w.watch.ran(rule, start)
		}
		p.rule = nil
		if !audience.gathered && len(audience.rules) == 0 || n.InMetadata() {
			return
		}
		if audience.gathered {
			gathered = append(gathered, Occurrence{r, n})
		}
		for _, rule := range audience.rules {
			p.begin(rule)
			start := w.watch.start()
			rule.node(p, n)
			w.watch.ran(rule, start)
		}
		p.rule = nil
	})
	if err == nil {
		p.later = nil
		for _, f := range w.later {
			p.rule = f.by
			p.calls().resume(f.call)
			p.Report(f.Finding)
		}
	}
	if !w.keep && gathered == nil && into.empty() {
		return nil
	}
	return w.judged(r, false, gathered, into)
}

// afterWalk judges one resource by the rules that run after the walk of all resources. The result is nil if it has
// no finding, no lookup and no end.
func (w *worker) afterWalk(r *xds.Resource, into *findings) *judged {
	p := w.pass(r, into)
	defer func() { handOn(recover(), p.rule, r) }()
	for _, rule := range w.after {
		p.begin(rule)
		start := w.watch.start()
		rule.Resource(p)
		w.watch.ran(rule, start)
	}
	out := w.judged(r, true, nil, into)
	if out.findings == nil && out.asked == nil && out.until.IsZero() {
		return nil
	}
	return out
}
