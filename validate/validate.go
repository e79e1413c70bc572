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
	"time"

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
	Snapshot View
	Known    xds.Known
	// Resource is the one whose message is judged; nil in Rule.Snapshot.
	Resource *xds.Resource
	// Subscribers are all places that ask a config source for resources, in the
	// order of the walk; nil in Rule.Node.
	Subscribers []Subscriber
	// Gathered are the messages that the rule's Gather names, in the order of the
	// walk; nil in Rule.Node.
	Gathered []Met

	now      time.Time // zero where it does not matter
	rule     *Rule
	findings *findings
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
	to := p.findings.of(p.rule)
	if !to.HasRoom(severity) {
		to.Leave(severity) // its place would take time
		return
	}
	d := r.Diagnostic(p.rule.Code, f.Path, f.Message)
	d.Severity, d.Help, d.Related = severity, f.Help, f.Related
	to.Add(d)
}

// Exists tells whether a resource is in the Snapshot or in the bootstrap.
func (p *Pass) Exists(t *xds.Type, name string) bool {
	return p.Snapshot.Has(t, name) || p.Known.Has(t, name)
}
