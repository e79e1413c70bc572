package validate

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"xdspub/xds"
)

// memory is a Judge's cache of a Snapshot, beside the results of the walk of each resource. With memory, the
// cost of an edit does not depend on the number of resources.
type memory struct {
	snapshot *xds.Snapshot
	made     *sync.Map // Indexes and Tables, as in answers
	// after holds the non-empty results of the rules that run after the walk.
	after map[*xds.Resource]*judged
	// askers holds the resources whose rules asked a question, by the hash of the part of the question that an
	// edit can change. Each question stands once. If two questions share a hash, both are checked again.
	askers map[uint64][]*judged
	seed   maphash.Seed
	// found are the results with findings.
	found map[*judged]bool
	// until is when the first of the findings may become another one; zero for never.
	until time.Time
	// collected holds the messages that Snapshot rules collect, together the results of these rules.
	collected column[Occurrence]
	together  map[*Rule]*together
}

// together is what a rule found in a Snapshot as a whole.
type together struct {
	findings *findings
	calls    []Call
}

func newMemory(a *answers, walked []*judged) *memory {
	m := &memory{
		snapshot: a.Snapshot, made: a.made, after: make(map[*xds.Resource]*judged),
		askers: make(map[uint64][]*judged), seed: maphash.MakeSeed(), found: make(map[*judged]bool), together: make(map[*Rule]*together),
	}
	for _, known := range walked {
		if known != nil {
			addAll(&m.collected, known)
		}
	}
	return m
}

// remember keeps what is known of a resource of the Snapshot.
func (m *memory) remember(known *judged) {
	for q := range m.askedByEdits(known) {
		m.askers[q] = append(m.askers[q], known)
	}
	if known.findings != nil {
		m.found[known] = true
	}
	if !known.until.IsZero() && (m.until.IsZero() || known.until.Before(m.until)) {
		m.until = known.until
	}
}

// forget drops the results of resources that are gone or judged again.
func (m *memory) forget(list []*judged) {
	asked, gone := make(map[uint64]bool), make(map[*judged]bool)
	for _, known := range list {
		gone[known] = true
		delete(m.found, known)
		for q := range m.askedByEdits(known) {
			asked[q] = true
		}
	}
	for q := range asked {
		m.askers[q] = slices.DeleteFunc(m.askers[q], func(known *judged) bool { return gone[known] })
		if len(m.askers[q]) == 0 {
			delete(m.askers, q)
		}
	}
}

// follow moves m to the Snapshot after an edit. kept has the results of the walk.
func (m *memory) follow(kept map[*xds.Resource]*judged, e *edit, s *xds.Snapshot) {
	m.snapshot = s
	if !e.gathered {
		return
	}
	for _, k := range e.keys {
		var now column[Occurrence]
		for _, r := range s.Named(k) {
			addAll(&now, kept[r])
		}
		m.collected = m.collected.replace(k, now)
	}
}

// addAll adds what was gathered in a resource.
func addAll(c *column[Occurrence], known *judged) {
	for _, o := range known.gathered {
		c.add(known.of, o)
	}
}

// askedByEdits returns the hashes of the questions of a resource, in the form that byEdits gives them.
func (m *memory) askedByEdits(j *judged) map[uint64]bool {
	asked := make(map[uint64]bool)
	for _, q := range j.asked {
		asked[m.hash(q.byEdits())] = true
	}
	return asked
}

func (m *memory) hash(q question) uint64 { return maphash.Comparable(m.seed, q) }

// byEdits returns the part of a question that an edit can change: an edit changes either all answers with the
// same part, or none.
func (q question) byEdits() question {
	switch q.about {
	case aboutNamed:
		q.about = aboutResource
	case aboutNearest:
		q.name = ""
	case aboutFirst:
		q.about = aboutIndex
	case aboutTable:
		q.about, q.name = aboutIndex, ""
	}
	return q
}

// askersOf returns those that may get other answers by an edit.
func (m *memory) askersOf(e *edit) map[*judged]bool {
	askers := make(map[*judged]bool)
	add := func(q question) {
		for _, known := range m.askers[m.hash(q)] {
			askers[known] = true
		}
	}
	for _, k := range e.keys {
		add(question{about: aboutResource, t: k.Type, name: k.Name})
	}
	for _, k := range e.came {
		add(question{about: aboutPresence, t: k.Type, name: k.Name})
	}
	for t := range e.types {
		add(question{about: aboutType, t: t})
	}
	for t := range e.renamed {
		add(question{about: aboutNearest, t: t})
	}
	for x, names := range e.names {
		for _, name := range names {
			add(question{about: aboutIndex, index: x, name: name})
		}
	}
	return askers
}
