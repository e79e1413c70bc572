package validate

import (
	"slices"

	"xdspub/diag"
	"xdspub/xds"
)

// Call is one call of a rule for a message, a resource or a Snapshot. If the lookups of a call have the same
// answers in two Snapshots, the call has the same findings.
type Call struct {
	// Found are the findings of the call.
	Found []Found
	// Sampled means that the call depends on all resources. Such a call has too many possible Snapshots to
	// enumerate, so the caller tries a sample of them.
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

// calls records the calls of rules. A nil *calls records nothing.
type calls struct {
	list []Call
	// open is the index of the current call in list. It is -1 until the call has a lookup or a finding, so calls
	// without either take no index.
	open int
}

func newCalls(o Options) *calls {
	if !o.Calls {
		return nil
	}
	return &calls{open: -1}
}

// begin ends the current call, and begins the next one.
func (c *calls) begin() {
	if c != nil {
		c.open = -1
	}
}

// current returns the index of the current call, and adds the call to list if necessary.
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

// present returns the current call.
func (c *calls) present() *Call {
	i := c.current()
	return &c.list[i]
}

// resume makes the call with an index the current call again.
func (c *calls) resume(call int) {
	if c != nil {
		c.open = call
	}
}

// ask records lookups of the current call.
func (c *calls) ask(list ...question) {
	if c != nil && len(list) > 0 {
		call := c.present()
		call.asked = append(call.asked, list...)
	}
}

// found records a finding of the current call.
func (c *calls) found(about *xds.Resource, d diag.Diagnostic) {
	if c != nil {
		call := c.present()
		call.Found = append(call.Found, Found{d.Identity(), d.Severity, about})
	}
}

// since returns a function. The function returns the lookups that the current call has made since the call of
// since.
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

// take returns the recorded calls, and forgets them. In each call, it lists equal lookups once.
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

// eachOnce returns the questions of a list without repetitions.
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

// calls returns the recorder of calls, or nil if Options.Calls is false.
func (p *Pass) calls() *calls {
	if p.view.recorder == nil {
		return nil
	}
	return p.view.recorder.calls
}

// Each calls f for each entry of a list, each time as a separate Call. The result of f for one entry must not
// depend on a lookup for another entry.
func Each[E any](p *LookupPass, list []E, f func(E)) {
	for _, e := range list {
		p.calls().begin()
		f(e)
	}
	p.calls().begin()
}

// notesOf returns notes for the Call of a rule with Snapshot, or nil if Options.Calls is false. A rule whose
// severity is Info is Sampled.
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

// Calls returns the calls of the rules of single resources for r in the last Run. It leaves out calls without a
// lookup and a finding. The order of the calls of a resource is the same in each Run. The Options of the Run must
// have Calls, and Complete must be true.
func (j *Judge) Calls(r *xds.Resource) (list []Call) {
	if walked := j.kept[r]; walked != nil {
		list = walked.calls
	}
	if after := j.memory.after[r]; after != nil {
		list = slices.Concat(list, after.calls)
	}
	return list
}

// SnapshotCalls returns the calls of rules with Snapshot in the last Run. The order of the rules is the same in
// each Run.
func (j *Judge) SnapshotCalls() (list []Call) {
	for _, r := range j.rules {
		if is := j.memory.together[r]; is != nil {
			list = append(list, is.calls...)
		}
	}
	return list
}

// Complete reports whether the Judge kept the results of the last Run. It is false if the Run left out findings at
// the limit, if its context ended, or if the Snapshot comes from a bootstrap. Calls and SnapshotCalls must not be
// used then.
func (j *Judge) Complete() bool { return j.memory != nil }
