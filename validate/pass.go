package validate

import (
	"cmp"
	"time"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/xds"
)

// Pass is the view of a rule that judges a message by its resource alone.
type Pass struct {
	// Envoy is the release that gets the resource.
	Envoy          *envoyapi.Version
	BootstrapFacts xds.BootstrapFacts
	// Resource is the resource under judgement; nil in Rule.Snapshot.
	Resource *xds.Resource

	profiles []Profile
	view     View
	memo     memo      // nil in Rule.Snapshot
	now      time.Time // zero where it does not matter
	rule     *Rule
	findings *findings
	// later, while a resource is walked, takes its findings: whether one is about a secret is
	// known at the end of the walk.
	later *[]reported
}

// reported is a finding that waits for the end of a walk.
type reported struct {
	by   *Rule
	call int // of calls
	Finding
}

// maxReported bounds the findings that wait. Beyond it a walk of its own finds the secrets.
const maxReported = 1000

// LookupPass is the view of a rule that looks up other resources beside its own.
type LookupPass struct {
	Pass
	Snapshot View
}

// SnapshotPass is the view of a rule that judges a whole Snapshot.
type SnapshotPass struct {
	LookupPass
	// Collected are the messages that the rule's Collect names, in the order of the walk.
	Collected []Occurrence
}

// Occurrence is a message in a resource.
type Occurrence struct {
	Resource *xds.Resource
	Node     *xds.Node
}

// CheckName is the Name of a Check of the rule.
type CheckName string

// Finding is what a rule reports.
type Finding struct {
	// Check is the check that makes the finding; empty for a rule without Checks.
	Check CheckName
	// Path is the field, below Resource's message.
	Path xds.Path
	// Constraints places the finding at the resource's constraints, which select its clients.
	Constraints bool
	// Resource is the resource that the finding is about; nil means Pass.Resource.
	Resource *xds.Resource
	// Message says what is wrong, values quoted, no capital, no full stop.
	Message string
	// Help says what would be right.
	Help    string
	Related []diag.Related
	// Correction is of a word at Path, or in the type URL of an Any there, that was likely meant
	// otherwise. The finding gets a Fix, and where it has no Help the question of the Correction.
	Correction diag.Correction
	// Warning makes the finding a warning where the rule is an error, Error the
	// other way round.
	Warning, Error bool
	// Eager means that Envoy refuses the fault even before Envoy uses the part.
	Eager bool
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
	if p.later != nil && len(*p.later) < maxReported {
		*p.later = append(*p.later, reported{p.rule, p.calls().current(), f})
		return
	}
	if !p.reached(r) || !p.view.from.options.lists(p.rule, f.Check) {
		return
	}
	severity, why := p.severity(r, f)
	if why != "" {
		f.Message += "; " + why
	}
	to := p.findings.of(p.rule)
	if !to.HasRoom(severity) {
		to.Leave(severity) // its place would take time
		return
	}
	d := r.Diagnostic(p.subCode(f), f.Path, f.Message)
	if f.Constraints {
		at := r.ConstraintsAt()
		d.Position, d.End = at.Position, at.End
	}
	d.Severity, d.Help, d.Related = severity, f.Help, f.Related
	if c := f.Correction; c.Right != "" {
		d.Help = cmp.Or(d.Help, c.Question())
		if e, ok := r.Origin.Correct(f.Path, c); ok {
			d.Correct(c, e)
		}
	}
	to.Add(d)
	p.calls().found(r, d)
}

func (p *Pass) subCode(f Finding) string { return diag.SubCode(p.rule.Code, string(f.Check)) }

// severity returns the severity of a finding about r. If an error is only a warning, why is the reason: Envoy
// does not use the part yet, or only newer Envoys refuse the fault.
func (p *Pass) severity(r *xds.Resource, f Finding) (s diag.Severity, why string) {
	s = p.rule.Severity
	switch {
	case f.Warning:
		s = diag.Warning
	case f.Error:
		s = diag.Error
	}
	if s == diag.Error && !f.Eager && p.rule.Idle != nil {
		if why = p.rule.Idle(p.view, r, f); why != "" {
			return diag.Warning, why
		}
	}
	if s == diag.Error {
		if before, takes := p.Envoy.StillTakes(p.subCode(f)); takes {
			return diag.Warning, "Envoy before " + before + " takes it"
		}
	}
	return s, ""
}

// HasRoom reports whether Report would list a finding. If the limit is reached, a rule can save the search for
// a suggestion.
func (p *Pass) HasRoom(f Finding) bool {
	severity, _ := p.severity(cmp.Or(f.Resource, p.Resource), f)
	return p.findings.of(p.rule).HasRoom(severity)
}

// Timed reports whether Options have a time.
func (p *Pass) Timed() bool { return !p.now.IsZero() }

// Passed reports whether a moment is over. Judge judges the resource again after the moment.
func (p *Pass) Passed(moment time.Time) bool {
	over := p.now.After(moment)
	if !over {
		p.view.taker.wait(moment)
	}
	return over
}

// Namesakes returns the resources with the Key of the judged one, itself included, in the order
// of the source. It is for Rule.Resource.
func (p *LookupPass) Namesakes() []*xds.Resource { return p.view.from.Named(p.Resource.Key) }

// IsFirst reports whether the resource is the first of its Namesakes.
func (p *LookupPass) IsFirst() bool {
	return p.view.from.Lookup(p.Resource.Type, p.Resource.Name) == p.Resource
}

// Subscribers returns all subscriptions and the resources that they stand in, in the order of the
// walk.
func (p *SnapshotPass) Subscribers() (list []xds.Subscriber) {
	for _, t := range allTypes {
		for _, r := range p.view.from.of(t) {
			for _, s := range r.Facts().Subscriptions {
				list = append(list, xds.Subscriber{Subscription: s, Resource: r})
			}
		}
	}
	return list
}

// Exists reports whether a resource is in the Snapshot or in the bootstrap.
func (p *LookupPass) Exists(t *xds.Type, name string) bool {
	return p.Snapshot.Has(t, name) || p.BootstrapFacts.Has(t, name)
}

// Lacks reports whether a resource is neither in the Snapshot nor in the bootstrap, and can't come
// from elsewhere.
func (p *LookupPass) Lacks(t *xds.Type, name string) bool {
	return !p.BootstrapFacts.Has(t, name) && p.Snapshot.Lacks(t, name)
}
