package validate

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"xdspub/diag"
	"xdspub/internal/crash"
	"xdspub/internal/parallel"
	"xdspub/xds"
)

// Judge judges Snapshots one after another, and caches the results of each resource. In the next Snapshot, it
// judges only the new resources, and the resources for which a lookup has another answer. A Judge is not for
// concurrent use.
type Judge struct {
	rules   []*Rule
	options Options // of the last Run
	kept    map[*xds.Resource]*judged
	memory  *memory // nil if kept is incomplete: the next Run then visits all resources, and judges those that kept lacks
}

// NewJudge returns a Judge with rules.
func NewJudge(rules []*Rule) *Judge { return &Judge{rules: rules} }

// judged holds the results of one resource: the results of the walk over its messages or, if after is set, the
// results of the rules that run after the walk.
type judged struct {
	of    *xds.Resource
	after bool // the results are those of the rules that run after the walk
	asked []answered
	*seldom
}

// seldom holds the results that few resources have. All other resources share one empty seldom, so that a
// watch can cache the results of many resources.
type seldom struct {
	findings *findings // nil if there are none
	gathered []Occurrence
	calls    []Call
	until    time.Time // from this time the results may change; zero if no result depends on the time
}

var never = &seldom{}

// holdsFor reports whether the results are those that the rules would have for the Snapshot of a.
func (j *judged) holdsFor(a *answers) bool {
	if !j.until.IsZero() && a.options.Now.After(j.until) {
		return false
	}
	return !slices.ContainsFunc(j.asked, func(q answered) bool { return !a.still(q.question, q.answer) })
}

// Run judges a Snapshot by the rules that o does not leave out. The findings are sorted and deterministic. If ctx
// ends, the findings are incomplete.
func Run(ctx context.Context, s *xds.Snapshot, rules []*Rule, o Options) diag.List {
	return run(ctx, s, rules, o, maxFindings)
}

func run(ctx context.Context, s *xds.Snapshot, rules []*Rule, o Options, most int) diag.List {
	return (&Judge{rules: rules, options: o}).run(ctx, s, false, most)
}

// Run returns the same findings as the function Run. It is faster if the Judge has judged many resources of s
// before.
func (j *Judge) Run(ctx context.Context, s *xds.Snapshot, o Options) diag.List {
	o.Now = o.Now.Round(0) // drop the monotonic reading: it hides that somebody set the clock back
	if !j.options.findAlike(o) || o.Now.Before(j.options.Now) {
		j.kept, j.memory = nil, nil
	}
	asComplete := slices.Equal(j.options.Incomplete, o.Incomplete)
	j.options = o
	if asComplete {
		if list, ok := j.runEdit(ctx, s, maxFindings); ok {
			return list
		}
	}
	// A Snapshot from a bootstrap is judged once. Its answers also depend on the files that deliver resources,
	// which no question records. So its results are not kept.
	return j.run(ctx, s, !s.FromBootstrap(), maxFindings)
}

func (j *Judge) run(ctx context.Context, s *xds.Snapshot, keep bool, most int) diag.List {
	o, a, found := j.options, newAnswers(s, j.options), newFindings(most)
	var resources []*xds.Resource
	for _, t := range allTypes {
		resources = append(resources, a.of(t)...)
	}
	rules := o.leftIn(j.rules)
	newWorker := func() *worker { return newWorker(a, rules, keep) }
	walked := judgeEach(ctx, resources, found, newWorker, func(w *worker, r *xds.Resource, into *findings) *judged {
		if known := j.kept[r]; known != nil && known.holdsFor(a) {
			return known
		}
		return w.walk(ctx, r, into)
	})
	after := judgeEach(ctx, resources, found, newWorker, (*worker).afterWalk)
	if ctx.Err() != nil { // walked and after may be incomplete
		return found.list(a)
	}
	m := newMemory(a, walked)
	j.judgeTogether(ctx, a, m, rules, found)
	if keep && ctx.Err() == nil {
		j.keep(m, walked, after)
	}
	return found.list(a)
}

// keep caches the results for the next Run. It does not cache a result without all findings: the next Run judges
// the resource again.
func (j *Judge) keep(m *memory, walked, after []*judged) {
	j.kept, j.memory = make(map[*xds.Resource]*judged, len(walked)), m
	for _, list := range [][]*judged{walked, after} {
		for _, known := range list {
			switch {
			case known == nil:
			case known.findings.full():
				j.memory = nil
			default:
				j.remember(m, known)
			}
		}
	}
}

// remember caches the result of a resource.
func (j *Judge) remember(m *memory, known *judged) {
	if known.after {
		m.after[known.of] = known
	} else {
		j.kept[known.of] = known
	}
	m.remember(known)
}

// findAlike reports whether results with Options o are valid with Options other. It ignores Incomplete, because
// questions record it, and the exact time of Now, because results have an end (seldom.until).
func (o Options) findAlike(other Options) bool {
	return o.Envoy == other.Envoy && o.Variants == other.Variants && o.Calls == other.Calls &&
		slices.Equal(o.Disable, other.Disable) && slices.Equal(o.Enable, other.Enable) &&
		slices.Equal(o.Profiles, other.Profiles) &&
		o.Now.IsZero() == other.Now.IsZero() && o.Bootstrap == other.Bootstrap && reflect.DeepEqual(o.BootstrapFacts, other.BootstrapFacts)
}

// judgeTogether runs the rules with Snapshot. After an edit, it runs only the rules that the edit concerns, and
// takes the old findings of the others.
func (j *Judge) judgeTogether(ctx context.Context, a *answers, m *memory, rules []*Rule, found *findings) {
	watch := j.options.Timings.stopwatch()
	defer watch.stop(j.options.Timings)
	for _, r := range rules {
		if r.Snapshot == nil || ctx.Err() != nil {
			continue
		}
		if m.together[r] == nil || a.edit.concerns(r) {
			part, recorder := found.rest(), j.options.notesOf(r)
			p := SnapshotPass{LookupPass: a.pass(j.options, recorder, part)}
			p.rule = r
			for _, o := range m.collected.entries {
				if slices.Contains(r.Collect, o.Node.Name()) {
					p.Collected = append(p.Collected, o)
				}
			}
			start := watch.start()
			runTogether(r, &p)
			watch.ran(r, start)
			m.together[r] = &together{part, recorder.taken()}
		}
		found.take(m.together[r].findings)
	}
}

// runTogether runs a rule with Snapshot. A panic names the rule.
func runTogether(r *Rule, p *SnapshotPass) {
	defer func() { handOn(recover(), r, nil) }()
	r.Snapshot(p)
}

// handOn panics again with a value that recover has returned, and names the rule that panicked and the resource that
// the rule judged; nil for all resources. handOn does nothing if the value is nil.
func handOn(value any, rule *Rule, r *xds.Resource) {
	if value == nil {
		return
	}
	e := crash.Of(value)
	if e.While == "" && rule != nil {
		e.Rule, e.While = rule.Code, "judging all resources by the rule "+rule.Code
		if r != nil {
			e.While = fmt.Sprintf("judging the %s %q by the rule %s", r.Type.Noun, r.Name, rule.Code)
		}
	}
	panic(e)
}

// judgeEach judges resources one by one on GOMAXPROCS goroutines. Each goroutine has its own worker. The results
// are incomplete if ctx ends.
func judgeEach(ctx context.Context, resources []*xds.Resource, found *findings, newWorker func() *worker,
	judge func(*worker, *xds.Resource, *findings) *judged) []*judged {
	const batch = 64
	all := make([]*judged, len(resources))
	batches := slices.Collect(slices.Chunk(all, batch))
	order := inOrder{all: found, parts: make([]*findings, len(batches))}
	var next atomic.Int64
	var workers parallel.Group
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			w := newWorker()
			defer w.watch.stop(w.answers.options.Timings)
			for i := int(next.Add(1)) - 1; i < len(batches); i = int(next.Add(1)) - 1 {
				part := order.begin()
				for at := range batches[i] {
					if ctx.Err() != nil {
						break
					}
					if out := judge(w, resources[batch*i+at], w.room(part)); out != nil {
						part.take(out.findings)
						batches[i][at] = out
					}
				}
				order.end(i, part)
			}
		})
	}
	workers.Wait()
	return all
}

// pass returns the view of a rule with Options o. recorder records the lookups; into gets the findings.
func (a *answers) pass(o Options, recorder *notes, into *findings) LookupPass {
	v := View{from: a, recorder: recorder}
	return LookupPass{Pass: Pass{Envoy: o.envoy(), BootstrapFacts: o.BootstrapFacts, profiles: o.profiles(), view: v, now: o.Now, findings: into}, Snapshot: v}
}
