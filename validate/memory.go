package validate

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"xdspub/xds"
)

// memory caches what a Judge knows of a Snapshot, except the results of the walks. With memory, the cost of an edit
// does not depend on the number of resources.
type memory struct {
	snapshot *xds.Snapshot
	made     *sync.Map // Indexes and Tables, as in answers
	// after holds the non-empty results of the rules that run after the walk.
	after map[*xds.Resource]*judged
	// askers maps the hash of a question to the results whose rules asked it. The hash is that of the part of the
	// question that an edit can change (byEdits). If two questions share a hash, the results of both are checked.
	askers map[uint64][]*judged
	seed   maphash.Seed
	// found are the results with findings.
	found map[*judged]bool
	// until is the first time at which a result may change; zero if no result depends on the time.
	until time.Time
	// collected holds the messages that Snapshot rules collect, together the results of these rules.
	collected column[Occurrence]
	together  map[*Rule]*together
}

// together holds the result of a rule that judges a Snapshot as a whole.
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

// remember adds the result of a resource to m.
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

// forget removes results of resources that are gone or judged again.
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

// follow changes m to the Snapshot s, which is the Snapshot after the edit e. kept has the results of the walks.
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

// addAll adds the collected messages of a resource.
func addAll(c *column[Occurrence], known *judged) {
	for _, o := range known.gathered {
		c.add(known.of, o)
	}
}

// askedByEdits returns the hashes, by byEdits, of the questions in a result.
func (m *memory) askedByEdits(j *judged) map[uint64]bool {
	asked := make(map[uint64]bool)
	for _, q := range j.asked {
		asked[m.hash(q.byEdits())] = true
	}
	return asked
}

func (m *memory) hash(q question) uint64 { return maphash.Comparable(m.seed, q) }

// byEdits returns the part of a question that an edit can change. An edit concerns either all questions with the
// same part, or none of them.
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

// askersOf returns the results whose lookups may have another answer after an edit.
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
