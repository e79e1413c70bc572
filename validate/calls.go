package validate

import (
	"slices"

	"xdspub/diag"
	"xdspub/xds"
)

// Call is one call of a rule for a message, a resource or a Snapshot. If the lookups of a call have the same
// answers in two Snapshots, the call has the same findings.
type Call struct {
	// Found are its findings.
	Found []Found
	// Sampled means that the call depends on all resources. Such a call has too many possible Snapshots to
	// enumerate.
	Sampled bool

	asked []question
}

// Found is a finding of a Call.
type Found struct {
	diag.Identity
	Severity diag.Severity
	// About is Finding.Resource, or the resource under judgement.
	About *xds.Resource
}

// calls takes down the calls of rules. A nil one takes down nothing.
type calls struct {
	list []Call
	// open is the index of the present call; -1 before its first lookup or finding. So the index of a call
	// does not depend on any answer.
	open int
}

func newCalls(o Options) *calls {
	if !o.Calls {
		return nil
	}
	return &calls{open: -1}
}

// begin begins another call.
func (c *calls) begin() {
	if c != nil {
		c.open = -1
	}
}

// current returns the index of the present call.
func (c *calls) current() int {
	if c == nil {
		return 0
	}
	if c.open < 0 {
		c.open = len(c.list)
		c.list = append(c.list, Call{})
	}
	return c.open
}

// present returns the present call.
func (c *calls) present() *Call {
	i := c.current()
	return &c.list[i]
}

// resume goes on with a call.
func (c *calls) resume(call int) {
	if c != nil {
		c.open = call
	}
}

// ask takes down lookups.
func (c *calls) ask(list ...question) {
	if c != nil && len(list) > 0 {
		call := c.present()
		call.asked = append(call.asked, list...)
	}
}

// found takes down a finding.
func (c *calls) found(about *xds.Resource, d diag.Diagnostic) {
	if c != nil {
		call := c.present()
		call.Found = append(call.Found, Found{d.Identity(), d.Severity, about})
	}
}

// since returns a function that returns what the present call looks up until then.
func (c *calls) since() func() []question {
	asked := func() []question {
		if c == nil || c.open < 0 {
			return nil
		}
		return c.list[c.open].asked
	}
	before := len(asked())
	return func() []question { return slices.Clone(asked()[before:]) }
}

// take returns the calls, and forgets them.
func (c *calls) take() (list []Call) {
	if c == nil {
		return nil
	}
	list, c.list, c.open = c.list, nil, -1
	for i := range list {
		list[i].asked = eachOnce(list[i].asked)
	}
	return list
}

// eachOnce returns the questions of a list, each once.
func eachOnce(list []question) (once []question) {
	seen := make(map[question]bool, len(list))
	for _, q := range list {
		if !seen[q] {
			seen[q] = true
			once = append(once, q)
		}
	}
	return once
}

// begin begins a call of a rule.
func (p *Pass) begin(r *Rule) {
	p.rule = r
	p.calls().begin()
}

// calls returns the calls of the pass; nil if Options do not have Calls.
func (p *Pass) calls() *calls {
	if p.view.taker == nil {
		return nil
	}
	return p.view.taker.calls
}

// Each calls f for each entry of a list, each time as a Call of its own. What f does for one entry must not depend
// on a lookup for another entry.
func Each[E any](p *LookupPass, list []E, f func(E)) {
	for _, e := range list {
		p.calls().begin()
		f(e)
	}
	p.calls().begin()
}

// notesOf returns notes for the Call of a rule with Snapshot; nil if Options do not have Calls.
func (o Options) notesOf(r *Rule) *notes {
	if !o.Calls {
		return nil
	}
	n := &notes{calls: newCalls(o)}
	if r.Severity == diag.Info {
		n.calls.present().Sampled = true
	}
	n.calls.ask(question{about: aboutCollected, name: r.Code})
	return n
}

// Calls returns the calls of rules for a resource of the last Run, without calls that neither looked up nor found
// anything. The order of the calls of a resource never changes. The Options of the Run must have Calls.
func (j *Judge) Calls(r *xds.Resource) (list []Call) {
	if walked := j.kept[r]; walked != nil {
		list = walked.calls
	}
	if after := j.memory.after[r]; after != nil {
		list = slices.Concat(list, after.calls)
	}
	return list
}

// SnapshotCalls returns the calls of rules with Snapshot in the last Run. Their order never changes.
func (j *Judge) SnapshotCalls() (list []Call) {
	for _, r := range j.rules {
		if is := j.memory.together[r]; is != nil {
			list = append(list, is.calls...)
		}
	}
	return list
}

// Complete reports whether the last Run listed all findings. Otherwise Calls and SnapshotCalls must not be used.
func (j *Judge) Complete() bool { return j.memory != nil }
