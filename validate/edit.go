package validate

import (
	"context"
	"maps"
	"slices"
	"time"

	"xdspub/diag"
	"xdspub/xds"
)

// memory is what a Judge keeps of a Snapshot beside what it found in each resource, so that
// the cost of an edit does not depend on how many resources there are.
type memory struct {
	snapshot *xds.Snapshot
	// askers are the resources whose rules have asked a question, each once.
	askers map[question][]*xds.Resource
	// found are the resources with findings.
	found map[*xds.Resource]bool
	// until is when the first of the findings may become another one; zero for never.
	until time.Time
	// subscribers and collected are those of all resources.
	subscribers []xds.Subscriber
	collected   []Occurrence
	// silent are the rules with Snapshot that found nothing.
	silent map[*Rule]bool
}

func newMemory(s *xds.Snapshot, resources []*xds.Resource, all []*judged) *memory {
	m := &memory{snapshot: s, askers: make(map[question][]*xds.Resource), found: make(map[*xds.Resource]bool), silent: make(map[*Rule]bool)}
	for i, r := range resources {
		m.collected = append(m.collected, all[i].gathered...)
		for _, s := range r.Facts().Subscriptions {
			m.subscribers = append(m.subscribers, xds.Subscriber{Subscription: s, Resource: r})
		}
	}
	return m
}

// remember keeps what is known of a resource of the Snapshot.
func (m *memory) remember(r *xds.Resource, j *judged) {
	for q := range j.askedByEdits() {
		m.askers[q] = append(m.askers[q], r)
	}
	if !j.findings.empty() {
		m.found[r] = true
	}
	if !j.until.IsZero() && (m.until.IsZero() || j.until.Before(m.until)) {
		m.until = j.until
	}
}

// forget drops what is known of resources that are gone, or are judged again.
func (m *memory) forget(resources map[*xds.Resource]*judged) {
	asked := make(map[question]bool)
	for r, j := range resources {
		maps.Copy(asked, j.askedByEdits())
		delete(m.found, r)
	}
	for q := range asked {
		m.askers[q] = slices.DeleteFunc(m.askers[q], func(r *xds.Resource) bool { return resources[r] != nil })
		if len(m.askers[q]) == 0 {
			delete(m.askers, q)
		}
	}
}

// askedByEdits returns the questions of a resource to which an edit can change the answer, in
// the form that byEdits gives them.
func (j *judged) askedByEdits() map[question]bool {
	asked := make(map[question]bool)
	for q := range j.asked {
		if q, edits := q.byEdits(); edits {
			asked[q] = true
		}
	}
	return asked
}

// byEdits reports whether an edit of some resource can change the answer to a question, and
// returns what all questions have in common that this edit changes the answers to.
func (q question) byEdits() (question, bool) {
	switch q.about {
	case aboutPresence, aboutNearest:
		return q, false // they go by names
	case aboutIndex:
		q.name = ""
	}
	return q, true
}

// edit is what is edited, and the types of that.
type edit struct {
	resources []xds.Edited
	types     map[*xds.Type]bool
}

// concerns reports whether the edit can change what a rule with Snapshot finds.
func (e *edit) concerns(r *Rule) bool {
	return !r.ByName || slices.ContainsFunc(r.Reads, func(t *xds.Type) bool { return e.types[t] })
}

// editSince returns how s differs from the Snapshot before; false where it is more than an
// edit, or not known.
func (m *memory) editSince(s *xds.Snapshot) (e edit, ok bool) {
	if m == nil {
		return e, false
	}
	if e.resources, ok = s.EditsSince(m.snapshot); !ok {
		return e, false
	}
	e.types = make(map[*xds.Type]bool)
	for _, r := range e.resources {
		e.types[r.Is.Type] = true
	}
	return e, true
}

// askersOf returns the resources that may get other answers by the edit.
func (m *memory) askersOf(e edit) map[*xds.Resource]bool {
	askers := make(map[*xds.Resource]bool)
	add := func(q question) {
		for _, r := range m.askers[q] {
			askers[r] = true
		}
	}
	for _, r := range e.resources {
		add(question{about: aboutResource, t: r.Is.Type, name: r.Is.Name})
	}
	for t := range e.types {
		add(question{about: aboutType, t: t})
	}
	for q := range m.askers {
		if q.about == aboutIndex && slices.ContainsFunc(q.index.types(), func(t *xds.Type) bool { return e.types[t] }) {
			add(q)
		}
	}
	return askers
}

// judgeEdited judges the resources that are edited, and those that get other answers by it.
// It also returns what was found in all of them before. It is not ok where
// the edit touches what rules see of all resources, or where findings are left out.
func (j *Judge) judgeEdited(ctx context.Context, e edit, w *worker, most int) (fresh, before map[*xds.Resource]*judged, ok bool) {
	fresh, before = make(map[*xds.Resource]*judged), make(map[*xds.Resource]*judged)
	for _, r := range e.resources {
		was := j.kept[r.Was]
		if was == nil || len(was.gathered)+len(r.Was.Facts().Subscriptions) > 0 {
			return nil, nil, false
		}
		is := w.judge(ctx, r.Is, newFindings(most))
		if len(is.gathered)+len(r.Is.Facts().Subscriptions) > 0 {
			return nil, nil, false
		}
		before[r.Was], fresh[r.Is] = was, is
	}
	for r := range j.memory.askersOf(e) {
		if was := j.kept[r]; was != nil && before[r] == nil && !was.holdsFor(w.answers, j.options.Now) {
			fresh[r], before[r] = w.judge(ctx, r, newFindings(most)), was
		}
	}
	for _, is := range fresh {
		if is.findings.full() {
			return nil, nil, false
		}
	}
	return fresh, before, true
}

// replace keeps what was found now in the place of what was found before.
func (j *Judge) replace(before, fresh map[*xds.Resource]*judged) {
	j.memory.forget(before)
	for r := range before {
		delete(j.kept, r)
	}
	for r, is := range fresh {
		j.kept[r] = is
		j.memory.remember(r, is)
	}
}

// runEdit judges s where only the content of some resources was edited since the Run before.
// It is not ok where that is not so, where the edit touches what rules see of all resources,
// or where findings are left out: then all of s has to be judged.
func (j *Judge) runEdit(ctx context.Context, s *xds.Snapshot, most int) (list diag.List, ok bool) {
	m := j.memory
	e, ok := m.editSince(s)
	if !ok || !m.until.IsZero() && j.options.Now.After(m.until) {
		return nil, false
	}
	rules := j.options.leftIn(j.rules)
	a := newAnswers(s)
	w := worker{options: j.options, answers: a, to: newDispatcher(rules, j.options.envoy()), watch: j.options.Timings.stopwatch(), keep: true}
	defer w.watch.stop(j.options.Timings)
	fresh, before, ok := j.judgeEdited(ctx, e, &w, most)
	if !ok || ctx.Err() != nil {
		return nil, false
	}
	j.replace(before, fresh)
	m.snapshot = s
	found := newFindings(most)
	for r := range m.found {
		found.take(j.kept[r].findings)
	}
	if found.full() {
		j.memory = nil
		return nil, false
	}
	j.judgeTogether(ctx, a.pass(j.options, nil, found), m, rules, &e)
	if ctx.Err() != nil {
		j.memory = nil // some rules did not run
	}
	return found.list(s.All(), j.rules, j.options), true
}
