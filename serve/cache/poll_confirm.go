package cache

import (
	"slices"
	"time"

	"xdspub/diag"
	"xdspub/xds"
)

// A REST client acknowledges a version by repeating its request with that version. A client rejects a version
// by a NACK or, as an Envoy does, by repeating its request with the old version twice, before and after a
// pause. Once is not enough, because a response may get lost, and another cluster of the Envoy may request
// the same endpoints. A client answers once for each of its requests that a Snapshot concerns.

// confirm makes the clients of a view report to a wait if the current state concerns them. confirm runs
// before waiting requests are woken.
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
			w.expect(&c.Client, nil)
			is.wait, is.waitFrom, is.before = w, now.number, is.refusal != nil
			if is.sent != nil && is.serves() { // the client has got the answer already
				is.sent.wait = w
			}
		}
	}
}

// setOf returns the set of names.
func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// serves reports whether the last Judge of the request saw the currently served resources of the type.
func (is *polled) serves() bool {
	now := is.view.current.Load()
	return now != nil && now.Version(is.of) == is.ofType
}

// forgetWait removes a wait from all requests.
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

// concerned reports whether changed resources, by name, may change the answer to the client.
func (is *polled) concerned(changed map[string]bool) bool {
	if is.all || is.asked > len(is.names) {
		return len(changed) > 0
	}
	return slices.ContainsFunc(is.names, func(name string) bool { return changed[name] })
}

// answer reports an answer to the wait: a refusal with its findings, or nil for an ACK.
func (is *polled) answer(r *refusal, found diag.List) {
	is.wait.answer(is.client, nil, r, found)
	is.wait = nil
}

// rejects reports whether the client has rejected the response for the wait, with a reason or twice.
func (is *polled) rejects() bool {
	return is.wait != nil && is.sent != nil && is.sent.wait == is.wait && is.sent.sure
}

// reportRejection reports a rejection to the wait. If the client had rejected the Snapshot before, and
// doesn't name a resource that the state of the wait, or a later state, has changed, the client only repeats its old
// rejection, and reportRejection reports an ACK.
func (is *polled) reportRejection(r *refusal, found diag.List, now *state) {
	changed := setOf(now.changedFrom(is.waitFrom, is.of))
	means := slices.ContainsFunc(r.changed, func(meant *xds.Resource) bool { return changed[meant.Name] })
	if is.before && !means {
		r, found = nil, nil
	}
	is.answer(r, found)
}

// withdraw withdraws the client's expected answer and its gap.
func (is *polled) withdraw() {
	if is.gap {
		is.view.clients.gapCloses(is.client.Node, is.of, false)
	}
	if is.wait != nil {
		is.wait.withdraw(is.client, nil)
		is.wait = nil
	}
}
