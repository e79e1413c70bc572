// Package transition judges the way from the published snapshot, in files or by streams, to a new Snapshot.
// Envoy can refuse a valid Snapshot because of the running configuration: a listener can't change
// enable_reuse_port, a secret can't become another kind of secret while a listener is subscribed to the
// secret. Guards refuse changes that Envoy accepts and that nobody means, such as the removal of all listeners.
// A rule is a Rule value in a file of its own, listed in Rules. Transitions runs the rules.
//
// The rules assume that Envoy runs the published snapshot. A resource that still drains after an earlier
// change is no longer published: no rule can predict a refusal because of such a resource.
//
// Rules rely on facts that were tried on Envoy 1.40.0, in the order of publishing files and in the order of
// responses on streams; e2e holds the examples. These facts are behaviour, which no list in the binary names,
// so no rule depends on a release of Envoy.
package transition

import (
	"cmp"
	"fmt"
	"slices"

	"xdspub/diag"
	"xdspub/xds"
)

// Rule judges the change from the published snapshot to a new Snapshot. A Rule holds no state.
type Rule struct {
	// Code is the rule's name in kebab-case, never used again once retired.
	Code string
	// Severity is the severity of the rule's findings, unless Finding.Warning is set. Error means that Envoy
	// refuses the change, or that a guard does. Warning means that Envoy accepts the change, but does not do what
	// the user meant.
	Severity diag.Severity
	// Guards means that the rule is a guard: it refuses changes that Envoy accepts, and runs only with
	// Options.Guard.
	Guards bool
	// Doc explains the rule: a summary line, an empty line, then what Envoy does and what would be right.
	Doc string
	// Run judges one change. It returns only errors of Pass.Old.
	Run func(*Pass) error
}

// Out reads the published resources.
type Out interface {
	// Of returns the published resources of a type.
	Of(*xds.Type) ([]*xds.Resource, error)
	// Serves reports whether a published resource answers the subscription.
	Serves(xds.Subscription) bool
	// Read returns the published resource of a type and a name; nil for none.
	Read(t *xds.Type, name string) (*xds.Resource, error)
	// Removed returns what the change to a Snapshot removes from the resources of a type. Retired resources count
	// as removed before.
	Removed(t *xds.Type, to *xds.Snapshot) (Removal, error)
}

// Served is a Snapshot that clients get by streams.
type Served struct {
	*xds.Snapshot
	// Current is the Snapshot without retired resources; nil if no resource is retired.
	Current *xds.Snapshot
}

// Of returns the resources of a type.
func (s Served) Of(t *xds.Type) ([]*xds.Resource, error) { return s.Snapshot.Of(t), nil }

// Read returns the resource of a type and a name; nil for none.
func (s Served) Read(t *xds.Type, name string) (*xds.Resource, error) { return s.Lookup(t, name), nil }

// Removed returns what the change to a Snapshot removes from the resources of a type.
func (s Served) Removed(t *xds.Type, to *xds.Snapshot) (r Removal, err error) {
	from := cmp.Or(s.Current, s.Snapshot)
	for _, was := range from.Of(t) {
		if to.Lookup(t, was.Name) == nil {
			r.Names = append(r.Names, was.Name)
		}
	}
	r.Published = len(from.Of(t))
	return r, nil
}

// Options are the options of Transitions. The zero value runs all rules except the guards.
type Options struct {
	// Disable holds the codes of rules that do not run.
	Disable []string
	// Guard makes the guards run; nil for none. OnlyGuards means that no other rule runs.
	Guard      *Guard
	OnlyGuards bool
	// Source is the path of the source tree, at which guards report removed resources.
	Source string
}

// runs reports whether a rule runs.
func (o Options) runs(r *Rule) bool {
	if r.Guards && o.Guard == nil || o.OnlyGuards && !r.Guards {
		return false
	}
	return !slices.Contains(o.Disable, r.Code)
}

// Pass is one call of Transitions.
type Pass struct {
	Old Out
	New *xds.Snapshot

	rule    *Rule
	guard   *Guard // nil without guards
	source  string
	list    diag.List
	sockets *sockets // nil before a rule asks for the sockets
}

// Finding is a fault that a rule reports.
type Finding struct {
	// Resource is the new resource that the finding is about; nil for a finding about removed resources.
	Resource *xds.Resource
	// Path is the field, below Resource's message.
	Path xds.Path
	// Message names the fault: values quoted, no capital, no full stop.
	Message string
	// Help names the remedy.
	Help string
	// Warning makes a warning of the finding of a rule whose severity is Error.
	Warning bool
}

// Report adds a finding.
func (p *Pass) Report(f Finding) {
	d := diag.Diagnostic{Code: p.rule.Code, Position: diag.Position{File: p.source}, Message: f.Message}
	if f.Resource != nil {
		d = f.Resource.Diagnostic(p.rule.Code, f.Path, f.Message)
	}
	d.Severity = p.rule.Severity
	if f.Warning {
		d.Severity = diag.Warning
	}
	d.Help = f.Help
	p.list = append(p.list, d)
}

// Transitions judges the change from old to new by the rules that o selects. Both snapshots must be valid.
// If nothing is published, Transitions returns no finding. Its errors are errors of reading old.
func Transitions(old Out, new *xds.Snapshot, o Options) (diag.List, error) {
	p := &Pass{Old: old, New: new, guard: o.Guard, source: o.Source}
	for _, r := range Rules {
		if !o.runs(r) {
			continue
		}
		p.rule = r
		if err := r.Run(p); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Code, err)
		}
	}
	return p.list.Sort(), nil
}
