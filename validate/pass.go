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
	memo     memo      // nil in Rule.Snapshot: Once then caches nothing
	now      time.Time // Options.Now
	rule     *Rule
	findings *findings
	// later collects the findings during a walk. The fields with secrets are known only after the walk. A nil later
	// lists a finding at once.
	later *[]reported
}

// reported is a finding that waits for the end of a walk.
type reported struct {
	by   *Rule
	call int // the index in calls.list
	Finding
}

// maxReported bounds the findings that wait for the end of a walk. Report lists further findings at once: a second
// walk of the resource then finds its secrets.
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

// Finding is a fault that a rule reports.
type Finding struct {
	// Check is the check that makes the finding; empty for a rule without Checks.
	Check CheckName
	// Path is the field, below Resource's message.
	Path xds.Path
	// Constraints places the finding at the resource's constraints, which select its clients.
	Constraints bool
	// Resource is the resource that the finding is about; nil means Pass.Resource.
	Resource *xds.Resource
	// Message names the fault: values quoted, no capital, no full stop.
	Message string
	// Help names the remedy.
	Help    string
	Related []diag.Related
	// Correction replaces a word that was likely meant otherwise: the value at Path, or a part of the type URL if
	// the value is an Any. It gives the finding a Fix. If Help is empty, the question of the Correction becomes the
	// Help.
	Correction diag.Correction
	// Warning makes a warning of the finding of a rule whose severity is Error. Error makes an error of the finding
	// of any other rule.
	Warning, Error bool
	// Eager means that Envoy refuses the fault even before Envoy uses the part.
	Eager bool
}

// Report lists a finding, unless its check is disabled, no client of the rule gets the resource, or the limit is
// reached.
func (p *Pass) Report(f Finding) {
	r := f.Resource
	if r == nil {
		r = p.Resource
	}
	if r.Lost.Echoes(f.Path) {
		return // the loader has reported a value that it could not read
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
		to.Leave(severity) // finding the place in the source would take time
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

// HasRoom reports whether the limit leaves room for a finding of the severity of f. If not, a rule can save the
// search for a suggestion.
func (p *Pass) HasRoom(f Finding) bool {
	severity, _ := p.severity(cmp.Or(f.Resource, p.Resource), f)
	return p.findings.of(p.rule).HasRoom(severity)
}

// Timed reports whether Options.Now is set.
func (p *Pass) Timed() bool { return !p.now.IsZero() }

// Passed reports whether Options.Now is after a moment. If not, the Judge judges the resource again after the
// moment.
func (p *Pass) Passed(moment time.Time) bool {
	over := p.now.After(moment)
	if !over {
		p.view.recorder.wait(moment)
	}
	return over
}

// Namesakes returns the resources with the Key of the judged resource, including this resource, in the order of the
// source. Only Rule.Resource may call it: after an edit of a Key, Rule.Resource runs again for all resources of the
// Key.
func (p *LookupPass) Namesakes() []*xds.Resource { return p.view.from.Named(p.Resource.Key) }

// IsFirst reports whether the judged resource is the first of its Namesakes. Only Rule.Resource may call it.
func (p *LookupPass) IsFirst() bool {
	return p.view.from.Lookup(p.Resource.Type, p.Resource.Name) == p.Resource
}

// Subscribers returns all subscriptions with their resources, in the order of the walk.
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

// Exists reports whether a resource is in the Snapshot, or among the static resources of the bootstrap.
func (p *LookupPass) Exists(t *xds.Type, name string) bool {
	return p.Snapshot.Has(t, name) || p.BootstrapFacts.Has(t, name)
}

// Lacks reports whether the client certainly has no resource of a type and name: the Snapshot is complete and does
// not have the resource, and neither does the bootstrap.
func (p *LookupPass) Lacks(t *xds.Type, name string) bool {
	return !p.BootstrapFacts.Has(t, name) && p.Snapshot.Lacks(t, name)
}
