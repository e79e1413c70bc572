package validate

import (
	"context"
	"slices"

	"xdspub/diag"
	"xdspub/xds"
)

// mostEdited is the largest number of added and removed resources in an edit. A changed resource counts twice. Run
// judges a larger change as a whole Snapshot, on all cores.
const mostEdited = 1_000

// edit is the difference between a Snapshot and the Snapshot before.
type edit struct {
	before *xds.Snapshot
	change xds.Change
	// keys are the keys in the change, each once; types are their types. came are the keys that only one of both
	// Snapshots has; renamed are the types of came.
	keys, came     []xds.Key
	types, renamed map[*xds.Type]bool
	// names are the names whose entries in an Index changed. renamedIn are the Indexes that gained or lost a name.
	names     map[anyIndex][]string
	renamedIn map[anyIndex]bool
	// gathered means that an old or a new result of the edit has messages that Snapshot rules collect.
	gathered bool
}

// editSince returns the edit from m's Snapshot to s, or nil if the difference is unknown or larger than an
// edit.
func (m *memory) editSince(s *xds.Snapshot) *edit {
	if m == nil {
		return nil
	}
	c, known := s.Since(m.snapshot)
	if !known || len(c.Added)+len(c.Removed) > mostEdited {
		return nil
	}
	e := &edit{
		before: m.snapshot, change: c, types: make(map[*xds.Type]bool), renamed: make(map[*xds.Type]bool),
		names: make(map[anyIndex][]string), renamedIn: make(map[anyIndex]bool),
	}
	seen := make(map[xds.Key]bool)
	for _, r := range slices.Concat(c.Removed, c.Added) {
		if seen[r.Key] {
			continue
		}
		seen[r.Key], e.types[r.Type] = true, true
		e.keys = append(e.keys, r.Key)
		if len(m.snapshot.Named(r.Key)) == 0 || len(s.Named(r.Key)) == 0 {
			e.came, e.renamed[r.Type] = append(e.came, r.Key), true
		}
	}
	return e
}

// note records that the entries of an Index under a name changed. renamed means that the Index gained or lost the
// name.
func (e *edit) note(x anyIndex, name string, renamed bool) {
	e.names[x] = append(e.names[x], name)
	e.renamedIn[x] = e.renamedIn[x] || renamed
}

// concerns reports whether the edit can change the findings of a rule with Snapshot. A nil edit stands for an
// unknown difference.
func (e *edit) concerns(r *Rule) bool { return e == nil || !r.ByName || e.gathered || len(e.came) > 0 }

// runEdit judges s from the results for the Snapshot of the previous Run. ok is false if the difference is unknown
// or too large, if a time has passed at which an old result may change, if the limit leaves out findings, or if ctx
// ends. The caller must then visit all resources of s.
func (j *Judge) runEdit(ctx context.Context, s *xds.Snapshot, most int) (list diag.List, ok bool) {
	m := j.memory
	e := m.editSince(s)
	if e == nil || !m.until.IsZero() && j.options.Now.After(m.until) {
		return nil, false
	}
	j.memory = nil // until all results belong to s
	rules := j.options.leftIn(j.rules)
	a := newAnswersAfter(s, j.options, e, m.made)
	w := newWorker(a, rules, true)
	defer w.watch.stop(j.options.Timings)
	fresh, before := j.judgeEdited(ctx, m, w, most)
	if ctx.Err() != nil || slices.ContainsFunc(fresh, func(is *judged) bool { return is.findings.full() }) {
		return nil, false
	}
	j.replace(m, e, before, fresh)
	m.follow(j.kept, e, s)
	found := newFindings(most)
	for known := range m.found {
		found.take(known.findings)
	}
	if !found.full() {
		j.judgeTogether(ctx, a, m, rules, found)
	}
	if ctx.Err() != nil || found.full() {
		return nil, false
	}
	j.memory = m
	return found.list(a), true
}

// judgeEdited judges the new resources of the Snapshot, and the resources whose lookups get other answers by
// the edit. before has the old results of these resources and of the removed resources.
func (j *Judge) judgeEdited(ctx context.Context, m *memory, w *worker, most int) (fresh, before []*judged) {
	a := w.answers
	e := a.edit
	stays := make(map[*xds.Resource]bool)
	for _, r := range e.change.Added {
		stays[r] = true
		if j.kept[r] == nil {
			fresh = append(fresh, w.walk(ctx, r, newFindings(most)))
		}
	}
	gone := make(map[*judged]bool)
	for _, r := range e.change.Removed {
		if !stays[r] {
			gone[j.kept[r]], gone[m.after[r]] = true, true
			before = append(before, j.kept[r], m.after[r])
		}
	}
	a.bringAll()
	after := make(map[*xds.Resource]bool) // the resources to judge again by the rules that run after the walk
	for _, k := range e.keys {
		for _, r := range a.Named(k) {
			after[r] = true
		}
	}
	for known := range m.askersOf(e) {
		switch {
		case gone[known] || known.holdsFor(a):
		case known.after:
			after[known.of] = true
		default:
			fresh, before = append(fresh, w.walk(ctx, known.of, newFindings(most))), append(before, known)
		}
	}
	for r := range after {
		before = append(before, m.after[r])
		if is := w.afterWalk(r, newFindings(most)); is != nil {
			fresh = append(fresh, is)
		}
	}
	isNil := func(known *judged) bool { return known == nil }
	return fresh, slices.DeleteFunc(before, isNil)
}

// replace replaces the old results by the fresh results.
func (j *Judge) replace(m *memory, e *edit, before, fresh []*judged) {
	m.forget(before)
	for _, known := range before {
		e.gathered = e.gathered || len(known.gathered) > 0
		if known.after {
			delete(m.after, known.of)
		} else {
			delete(j.kept, known.of)
		}
	}
	for _, known := range fresh {
		e.gathered = e.gathered || len(known.gathered) > 0
		j.remember(m, known)
	}
}
