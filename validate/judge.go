package validate

import (
	"context"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"time"

	"xdspub/diag"
	"xdspub/xds"
)

// Judge judges Snapshots one after another. It keeps what it found about each resource:
// of the next Snapshot it judges the resources that are new, and those for which what
// their rules looked up has changed. Not for concurrent use.
type Judge struct {
	rules   []*Rule
	options Options // of the last Run
	kept    map[*xds.Resource]*judged
	memory  *memory // nil where kept does not hold all
}

// NewJudge returns a Judge that goes by these rules and has seen nothing yet.
func NewJudge(rules []*Rule) *Judge { return &Judge{rules: rules} }

// judged is what the rules found in one resource.
type judged struct {
	findings *findings
	gathered []Occurrence
	asked    map[question]any
	until    time.Time // zero for as long as asked holds
}

// note takes down what a rule looked up.
func (j *judged) note(q question, answer any) {
	if j == nil {
		return
	}
	if j.asked == nil {
		j.asked = make(map[question]any)
	}
	j.asked[q] = answer
}

// wait takes down a moment from which on a rule may find another thing.
func (j *judged) wait(moment time.Time) {
	if j != nil && (j.until.IsZero() || moment.Before(j.until)) {
		j.until = moment
	}
}

// holdsFor reports whether the rules would find the same.
func (j *judged) holdsFor(a *answers, now time.Time) bool {
	if !j.until.IsZero() && now.After(j.until) {
		return false
	}
	for q, answer := range j.asked {
		if !a.still(q, answer) {
			return false
		}
	}
	return true
}

// Run judges a Snapshot by those of the rules that o leaves in. The result is sorted
// and the same from run to run. Where ctx ends it is not all.
func Run(ctx context.Context, s *xds.Snapshot, rules []*Rule, o Options) diag.List {
	return run(ctx, s, rules, o, maxFindings)
}

func run(ctx context.Context, s *xds.Snapshot, rules []*Rule, o Options, most int) diag.List {
	return (&Judge{rules: rules, options: o}).run(ctx, s, false, most)
}

// Run judges as the function Run does, faster the more of the Snapshot the Judge has seen.
func (j *Judge) Run(ctx context.Context, s *xds.Snapshot, o Options) diag.List {
	if !j.options.findAlike(o) || o.Now.Before(j.options.Now) {
		j.kept, j.memory = nil, nil
	}
	j.options = o
	if list, ok := j.runEdit(ctx, s, maxFindings); ok {
		return list
	}
	// What an Envoy gets by files is judged once, and its lookups go by these files.
	return j.run(ctx, s, !s.FromBootstrap(), maxFindings)
}

func (j *Judge) run(ctx context.Context, s *xds.Snapshot, keep bool, most int) diag.List {
	o, a, found := j.options, newAnswers(s), newFindings(most)
	resources := s.All()
	if o.Bootstrap != nil {
		resources = append(resources, o.Bootstrap)
	}
	rules := o.leftIn(j.rules)
	all := j.judgeEach(ctx, resources, found, func() *worker {
		return &worker{options: o, answers: a, to: newDispatcher(rules, o.envoy()), watch: o.Timings.stopwatch(), keep: keep}
	})
	if ctx.Err() != nil { // all may have gaps
		return found.list(resources, j.rules, o)
	}
	m := newMemory(s, resources, all)
	j.judgeTogether(ctx, a.pass(o, nil, found), m, rules, nil)
	if keep && ctx.Err() == nil {
		j.kept, j.memory = make(map[*xds.Resource]*judged, len(resources)), m
		for i, r := range resources {
			if all[i].findings.full() {
				j.memory = nil
				continue
			}
			j.kept[r] = all[i]
			m.remember(r, all[i])
		}
	}
	return found.list(resources, j.rules, o)
}

// leftIn are those of the rules that o leaves in.
func (o Options) leftIn(rules []*Rule) []*Rule {
	return slices.DeleteFunc(slices.Clone(rules), func(r *Rule) bool {
		return slices.Contains(o.Disable, r.Code) || r.OptIn && !slices.Contains(o.Enable, r.Code)
	})
}

// findAlike reports whether the rules find the same in a resource with other options.
func (o Options) findAlike(other Options) bool {
	return o.Envoy == other.Envoy && slices.Equal(o.Disable, other.Disable) && slices.Equal(o.Enable, other.Enable) &&
		o.Now.IsZero() == other.Now.IsZero() && reflect.DeepEqual(o.BootstrapFacts, other.BootstrapFacts)
}

// judgeTogether judges what stands in several resources. After an edit, which is nil in a
// whole run, rules are left out that would find nothing again.
func (j *Judge) judgeTogether(ctx context.Context, pass LookupPass, m *memory, rules []*Rule, e *edit) {
	watch := j.options.Timings.stopwatch()
	defer watch.stop(j.options.Timings)
	for _, r := range rules {
		if r.Snapshot == nil || ctx.Err() != nil || e != nil && m.silent[r] && !e.concerns(r) {
			continue
		}
		p := SnapshotPass{LookupPass: pass, Subscribers: m.subscribers}
		p.rule = r
		for _, o := range m.collected {
			if slices.Contains(r.Collect, o.Node.Name()) {
				p.Collected = append(p.Collected, o)
			}
		}
		before := pass.findings.size()
		watch.snapshot(r, &p)
		m.silent[r] = pass.findings.size() == before
	}
}

// judgeEach judges resources one by one, on as many goroutines as there are cores, as far
// as it does not know what comes out. Each has a worker of its own. It walks each resource
// once. Where ctx ends it is not all.
func (j *Judge) judgeEach(ctx context.Context, resources []*xds.Resource, found *findings, newWorker func() *worker) []*judged {
	const batch = 64
	all := make([]*judged, len(resources))
	batches := slices.Collect(slices.Chunk(all, batch))
	order := inOrder{all: found, parts: make([]*findings, len(batches))}
	work := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			w := newWorker()
			defer w.watch.stop(j.options.Timings)
			for i := range work {
				part := order.begin()
				for at := range batches[i] {
					if ctx.Err() != nil {
						break
					}
					r := resources[batch*i+at]
					out := j.kept[r]
					if out == nil || !out.holdsFor(w.answers, j.options.Now) {
						out = w.judge(ctx, r, part.rest())
					}
					part.take(out.findings)
					batches[i][at] = out
				}
				order.end(i, part)
			}
		})
	}
	for i := range batches {
		work <- i
	}
	close(work)
	workers.Wait()
	return all
}

// worker judges resources on one goroutine.
type worker struct {
	options Options
	answers *answers
	to      dispatcher
	watch   stopwatch
	keep    bool // what comes out
}

// judge judges one resource by the rules that look at its messages. Where ctx ends it is not
// all.
func (w *worker) judge(ctx context.Context, r *xds.Resource, into *findings) *judged {
	out := &judged{findings: into}
	var taker *judged
	if w.keep {
		taker = out
	}
	p := w.answers.pass(w.options, taker, into)
	p.Resource, p.later, p.memo = r, new([]reported), make(memo)
	err := r.Walk(ctx, func(n *xds.Node) {
		audience := w.to.audience(n)
		for _, rule := range audience.everywhere {
			p.rule = rule
			w.watch.node(rule, &p, n)
		}
		if !audience.gathered && len(audience.rules) == 0 || n.InMetadata() {
			return
		}
		if audience.gathered {
			out.gathered = append(out.gathered, Occurrence{r, n})
		}
		for _, rule := range audience.rules {
			p.rule = rule
			w.watch.node(rule, &p, n)
		}
	})
	if err != nil {
		return out
	}
	found := *p.later
	p.later = nil
	for _, f := range found {
		p.rule = f.by
		p.Report(f.Finding)
	}
	return out
}

// pass is what rules see with these options. What they look up is taken down by taker.
func (a *answers) pass(o Options, taker *judged, into *findings) LookupPass {
	v := View{from: a, taker: taker}
	return LookupPass{Pass: Pass{Envoy: o.envoy(), BootstrapFacts: o.BootstrapFacts, view: v, now: o.Now, findings: into}, Snapshot: v}
}
