package cache

import (
	"slices"
	"time"

	"xdspub/diag"
	"xdspub/xds"
)

// A client by REST has taken what it asks again for with that version, and rejects what it says so of or,
// as an Envoy, asks for once more with the version of before, and does so again after a pause: a response
// may be lost, and another cluster of it may ask for the same endpoints. A client answers once for each of
// its questions that a Snapshot concerns.

// confirm has the clients that the current state of a view concerns answer to a wait. It comes before
// those that wait for a change are told.
func (ps *polls) confirm(w *wait, v *view) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.sweep(time.Now())
	now, changed := v.current.Load(), make(map[*xds.Type]map[string]bool)
	for e := ps.recent.Front(); e != nil; e = e.Next() {
		c := e.Value.(*poller)
		if c.nameless() {
			continue
		}
		for _, is := range c.questions {
			if changed[is.of] == nil {
				changed[is.of] = setOf(now.changed(is.of))
			}
			if is.view != v || !is.concerned(changed[is.of]) {
				continue
			}
			w.expects(&c.Client, nil)
			is.wait, is.before = w, is.refusal != nil
			if is.sent != nil && is.serves() { // it was faster
				is.sent.wait = w
			}
		}
	}
}

// setOf returns names as a set.
func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// serves reports whether what a client was last judged by is what clients get now.
func (is *polled) serves() bool {
	now := is.view.current.Load()
	return now != nil && now.Version(is.of) == is.ofType
}

// forgetWait makes a wait one that nobody answers to any more.
func (ps *polls) forgetWait(w *wait) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, e := range ps.clients {
		for _, is := range e.Value.(*poller).questions {
			if is.wait == w {
				is.wait = nil
			}
			if is.sent != nil && is.sent.wait == w {
				is.sent.wait = nil
			}
		}
	}
}

// concerned reports whether the client may get something else by a change of resources.
func (is *polled) concerned(changed map[string]bool) bool {
	if is.all || is.asked > len(is.names) {
		return len(changed) > 0
	}
	return slices.ContainsFunc(is.names, func(name string) bool { return changed[name] })
}

// answers answers to the wait: by a refusal and the findings about that, or nil.
func (is *polled) answers(r *refusal, found diag.List) {
	is.wait.answers(is.client, nil, r, found)
	is.wait = nil
}

// rejects reports whether the client has rejected the response that the wait is for.
func (is *polled) rejects() bool {
	return is.wait != nil && is.sent != nil && is.sent.wait == is.wait && is.sent.sure
}

// rejected answers to the wait by a refusal. A client that has rejected what was there before, and does
// not say that it means what has changed, goes on to reject that: this is no answer to the Snapshot.
func (is *polled) rejected(r *refusal, found diag.List, now *state) {
	changed := setOf(now.changed(is.of))
	means := slices.ContainsFunc(r.changed, func(meant *xds.Resource) bool { return changed[meant.Name] })
	if is.before && !means {
		r, found = nil, nil
	}
	is.answers(r, found)
}

// ends takes back what the client would have answered, and its gap.
func (is *polled) ends() {
	if is.gap {
		is.view.clients.gapCloses(is.client.Node, is.of, false)
	}
	if is.wait != nil {
		is.wait.ends(is.client, nil)
		is.wait = nil
	}
}
