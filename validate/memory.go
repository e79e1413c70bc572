package validate

import (
	"slices"
	"sync"
	"time"

	"xdspub/xds"
)

// memory is what a Judge keeps of a Snapshot beside what it found in the walk of each resource, so
// that the cost of an edit does not depend on how many resources there are.
type memory struct {
	snapshot *xds.Snapshot
	made     *sync.Map // Indexes and Tables, as in answers
	// after is what was found in resources after the walk, where anything was found or asked.
	after map[*xds.Resource]*judged
	// askers are those whose rules have asked a question, each once, by what an edit changes.
	askers map[question][]*judged
	// found are those with findings.
	found map[*judged]bool
	// until is when the first of the findings may become another one; zero for never.
	until time.Time
	// collected is what Snapshot rules collect, and together what they found.
	collected column[Occurrence]
	together  map[*Rule]*findings
}

func newMemory(a *answers, walked []*judged) *memory {
	m := &memory{
		snapshot: a.Snapshot, made: a.made, after: make(map[*xds.Resource]*judged),
		askers: make(map[question][]*judged), found: make(map[*judged]bool), together: make(map[*Rule]*findings),
	}
	for _, known := range walked {
		addAll(&m.collected, known)
	}
	return m
}

// remember keeps what is known of a resource of the Snapshot.
func (m *memory) remember(known *judged) {
	for q := range known.askedByEdits() {
		m.askers[q] = append(m.askers[q], known)
	}
	if known.findings != nil {
		m.found[known] = true
	}
	if !known.until.IsZero() && (m.until.IsZero() || known.until.Before(m.until)) {
		m.until = known.until
	}
}

// forget drops what is known of resources that are gone, or are judged again.
func (m *memory) forget(list []*judged) {
	asked, gone := make(map[question]bool), make(map[*judged]bool)
	for _, known := range list {
		gone[known] = true
		delete(m.found, known)
		for q := range known.askedByEdits() {
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

// follow makes m that of the Snapshot after an edit. What was found in the walk of its resources
// is in kept.
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

// askedByEdits returns the questions of a resource in the form that byEdits gives them.
func (j *judged) askedByEdits() map[question]bool {
	asked := make(map[question]bool)
	for _, q := range j.asked {
		asked[q.byEdits()] = true
	}
	return asked
}

// byEdits returns what a question has in common with all those that an edit changes the answers
// to when it changes the answer to this one.
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
		for _, known := range m.askers[q] {
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
