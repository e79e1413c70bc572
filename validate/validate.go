// Package validate judges one Snapshot. A rule is a Rule value in a file of its
// own, listed in Rules; Run walks every resource once and hands each message to
// the rules that asked for its type. The package knows messages and references,
// not files, encodings or printing: where a finding stands in the source is the
// resource's Origin's to say, and what time it is Options'.
//
// What the rules know about Envoy was tried on Envoy 1.40.0; docs/rules.md has
// every rule with its reason and an example.
package validate

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/xds"
)

// Rule is one judgement. It holds no state: Node and Snapshot may run on several
// goroutines at once.
type Rule struct {
	// Code is the rule's name in kebab-case, never used again once retired.
	Code string
	// Severity of its findings, unless a Finding says otherwise.
	Severity diag.Severity
	// Doc explains the rule: a first line that sums it up, an empty line, then
	// what Envoy does and what would be right, with the source.
	Doc string
	// Whole says that the rule looks for other resources, and is wrong where some
	// could not be read.
	Whole bool
	// Unused says that the rule reports what nothing names, and is wrong where a part of
	// some resource could not be read.
	Unused bool
	// Messages are the types for which Node is called, but for what stands in
	// typed_filter_metadata: Envoy never looks at it. Empty means every message.
	Messages []protoreflect.FullName
	// Wants says it instead of Messages where it depends on what messages of a type
	// can hold. It is asked about each type that is met.
	Wants func(protoreflect.MessageDescriptor) bool
	// Node judges one message of one resource.
	Node func(*Pass, *xds.Node)
	// Gather are the types of the messages that Snapshot finds in Pass.Gathered, with
	// the same exception.
	Gather []protoreflect.FullName
	// Snapshot judges what stands in several resources, once a Run.
	Snapshot func(*Pass)
	// Off says that the rule runs only where it is enabled by name.
	Off bool
}

// Options for Run; the zero value judges by all rules, with nothing known beside
// the Snapshot.
type Options struct {
	// Known is what the Envoy has from its own bootstrap.
	Known xds.Known
	// Bootstrap is the Envoy's own bootstrap without its static resources, to be
	// judged too; nil where only the Snapshot is.
	Bootstrap *xds.Resource
	// Disable holds the codes of rules that are left out.
	Disable []string
	// Now is the time at which certificates must be valid; zero means that nobody
	// judges that, and the result depends on the Snapshot alone.
	Now time.Time
	// Enable holds the codes of rules that run though they are off by default.
	// What is disabled as well stays out.
	Enable []string
	// Partial says that resources are missing because they could not be read:
	// rules that need the Whole snapshot stay silent, they would only echo that.
	Partial bool
	// Timings, where it is set, is told how long each rule took.
	Timings *Timings
}

// Pass is what a rule sees of a Run.
type Pass struct {
	Snapshot *xds.Snapshot
	Known    xds.Known
	// Now is zero where time does not matter.
	Now time.Time
	// Resource is the one whose message is judged; nil in Rule.Snapshot.
	Resource *xds.Resource
	// Subscribers are all places that ask a config source for resources, in the
	// order of the walk; nil in Rule.Node.
	Subscribers []Subscriber
	// Gathered are the messages that the rule's Gather names, in the order of the
	// walk; nil in Rule.Node.
	Gathered []Met

	rule *Rule
	// Made when asked for: the names of the resources, and by the name of a route
	// configuration the connection managers that ask for it and its hosts of VHDS; and
	// whether one of them traces by the tracer of the bootstrap.
	names    map[*xds.Type]func() *diag.Words
	managers func() map[string][]*hcmv3.HttpConnectionManager
	hosts    func() map[string][]*xds.Resource
	traces   func() bool
	findings *diag.Bounded
}

// Subscriber is a Subscription and the resource that it stands in.
type Subscriber struct {
	xds.Subscription
	Resource *xds.Resource
}

// Met is a message and the resource that it stands in.
type Met struct {
	Resource *xds.Resource
	Node     *xds.Node
}

// Finding is what a rule reports.
type Finding struct {
	// Path is the field, below Resource's message.
	Path xds.Path
	// Resource is the one that the finding is about; nil means Pass.Resource.
	Resource *xds.Resource
	// Message says what is wrong, values quoted, no capital, no full stop.
	Message string
	// Help says what would be right.
	Help    string
	Related []diag.Related
	// Warning makes the finding a warning where the rule is an error, Error the
	// other way round.
	Warning, Error bool
}

// Report adds a finding.
func (p *Pass) Report(f Finding) {
	r := f.Resource
	if r == nil {
		r = p.Resource
	}
	if r.Lost.Echoes(f.Path) {
		return // what could not be read was reported
	}
	severity := p.rule.Severity
	switch {
	case f.Warning:
		severity = diag.Warning
	case f.Error:
		severity = diag.Error
	}
	if severity == diag.Error && p.ofIdleTracer(r, f.Path) {
		severity = diag.Warning
		f.Message += "; no connection manager traces by this tracer yet"
	}
	if !p.findings.HasRoom(severity) {
		p.findings.Leave(severity) // its place would take time
		return
	}
	d := r.Diagnostic(p.rule.Code, f.Path, f.Message)
	d.Severity, d.Help, d.Related = severity, f.Help, f.Related
	p.findings.Add(d)
}

// Exists tells whether a resource is in the Snapshot or in the bootstrap.
func (p *Pass) Exists(t *xds.Type, name string) bool {
	return p.Snapshot.Lookup(t, name) != nil || p.Known.Has(t, name)
}

// Run judges a Snapshot by all rules that o leaves in. The result is sorted
// and the same from run to run. Where ctx ends it is not all.
func Run(ctx context.Context, s *xds.Snapshot, o Options) diag.List {
	return run(ctx, s, o, maxFindings)
}

// maxFindings bounds the findings of a Run, of each severity.
const maxFindings = 100_000

func run(ctx context.Context, s *xds.Snapshot, o Options, most int) diag.List {
	lacking := slices.ContainsFunc(s.All(), func(r *xds.Resource) bool { return r.Lost != nil }) || o.Bootstrap != nil && o.Bootstrap.Lost != nil
	rules := slices.DeleteFunc(slices.Clone(Rules), func(r *Rule) bool {
		return slices.Contains(o.Disable, r.Code) || o.Partial && r.Whole || lacking && r.Unused || r.Off && !slices.Contains(o.Enable, r.Code)
	})
	findings := diag.NewBounded(most)
	pass := Pass{Snapshot: s, Known: o.Known, Now: o.Now, names: make(map[*xds.Type]func() *diag.Words), findings: &findings}
	pass.hosts = sync.OnceValue(func() map[string][]*xds.Resource { return hostsByRoutes(&pass) })
	pass.managers = sync.OnceValue(func() map[string][]*hcmv3.HttpConnectionManager { return findManagers(s) })
	pass.traces = sync.OnceValue(func() bool { return tracesByBootstrap(s) })
	for _, t := range xds.Types {
		pass.names[t] = sync.OnceValue(func() *diag.Words {
			var names []string
			for _, r := range named(&pass, t) {
				names = append(names, r.Name)
			}
			return diag.NewWords(names)
		})
	}
	gathered := walkAll(ctx, &pass, rules, o)
	watch := o.Timings.stopwatch()
	for _, r := range rules {
		if r.Snapshot != nil && ctx.Err() == nil {
			p := pass
			p.rule = r
			for _, m := range gathered {
				if slices.Contains(r.Gather, m.Node.Name()) {
					p.Gathered = append(p.Gathered, m)
				}
			}
			watch.snapshot(r, &p)
		}
	}
	watch.stop(o.Timings)
	return findings.List(diag.Position{}, "from the rules").Sort()
}

// walkAll walks each resource once, on as many goroutines as there are cores. It
// leaves the subscriptions in the pass, and returns the messages that rules gather, for
// the rules that judge them together.
func walkAll(ctx context.Context, pass *Pass, rules []*Rule, o Options) []Met {
	all := pass.Snapshot.All()
	if o.Bootstrap != nil {
		all = append(all, o.Bootstrap)
	}
	batches := slices.Collect(slices.Chunk(all, 64))
	gathered := make([][]Met, len(batches))
	found := findingsInOrder{all: pass.findings, parts: make([]*diag.Bounded, len(batches))}
	work := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			watch := o.Timings.stopwatch()
			defer watch.stop(o.Timings)
			to := newDispatcher(rules)
			for i := range work {
				findings := found.begin()
				for _, r := range batches[i] {
					if ctx.Err() != nil {
						break
					}
					p := *pass
					p.Resource, p.findings = r, &findings
					r.Walk(func(n *xds.Node) {
						audience := to.audience(n)
						for _, rule := range audience.everywhere {
							p.rule = rule
							watch.node(rule, &p, n)
						}
						if !audience.gathered && len(audience.rules) == 0 || n.InMetadata() {
							return
						}
						if audience.gathered {
							gathered[i] = append(gathered[i], Met{r, n})
						}
						for _, rule := range audience.rules {
							p.rule = rule
							watch.node(rule, &p, n)
						}
					})
				}
				found.end(i, &findings)
			}
		})
	}
	for i := range batches {
		work <- i
	}
	close(work)
	workers.Wait()
	for _, r := range all {
		if ctx.Err() != nil {
			break
		}
		for _, s := range r.Facts().Subscriptions {
			pass.Subscribers = append(pass.Subscribers, Subscriber{s, r})
		}
	}
	return slices.Concat(gathered...)
}

// findingsInOrder puts together what is found in parts that are judged side by side: in
// the order of the parts, so that the same findings are kept whoever is faster.
type findingsInOrder struct {
	mu    sync.Mutex
	all   *diag.Bounded
	parts []*diag.Bounded // that are judged and not in all yet
	next  int             // part that all lacks
}

// begin is what a part collects its findings in. It has no more room than all have.
func (f *findingsInOrder) begin() diag.Bounded {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all.Rest()
}

func (f *findingsInOrder) end(i int, part *diag.Bounded) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.parts[i] = part
	for ; f.next < len(f.parts) && f.parts[f.next] != nil; f.next++ {
		f.all.Take(f.parts[f.next])
		f.parts[f.next] = nil
	}
}
