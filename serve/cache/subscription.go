package cache

import (
	"maps"
	"slices"
	"time"

	"xdspub/validate/transition"
	"xdspub/xds"
	"xdspub/xds/params"
)

// subscription is a client's subscription to a type, with the client's resources.
type subscription struct {
	of *xds.Type
	resourceNames
	several *several // nil for a client with one set of parameters
	stream  *Stream

	delivered
	pending pending
	// absent are the details of the errors that the client knows by its ACKs, by name; "" if the client must
	// get an error once the resource is missing.
	absent map[string]string

	exchange
	nack       nack
	removals   removals
	heartbeats heartbeats
	last       last
	gap        bool // the client has a reported gap
}

func newSubscription(of *xds.Type, s *Stream) *subscription {
	return &subscription{
		of: of, stream: s, delivered: delivered{versions: make(map[string]string)}, absent: make(map[string]string),
		nack:       nack{names: make(map[string]struct{}), errors: make(map[string]string)},
		removals:   removals{unknown: make(map[string]time.Time)},
		heartbeats: heartbeats{alive: make(map[string]*encoded), due: make(map[string]struct{})},
	}
}

// resourceNames are the names that the client subscribes to.
type resourceNames struct {
	// wildcard means that the client subscribes to all resources, besides names.
	names    map[string]struct{}
	wildcard bool
	// legacy means that the wildcard is an empty list of names. Only state-of-the-world streams set legacy.
	legacy bool
	// collections are the collections in names; usually nil. If the client has several parameter sets,
	// collections are all names.
	collections map[string]struct{}
}

// exchange is the open request, and the responses without an ACK or NACK.
type exchange struct {
	// answer sends a response; nil if the client has no open request.
	answer func(*response)
	// nonce is the nonce of the last response.
	nonce string
	// made is the response that was passed to answer and is not sent yet. sent is the response that waits for
	// an ACK or NACK.
	made, sent *response
}

// nack holds the refused resources after a NACK. The server sends them again in the next state, or in the
// same state if the reason for the NACK may pass.
type nack struct {
	// names are the refused resources, errors the details of the refused errors, by name.
	names  map[string]struct{}
	errors map[string]string
	state  *state // of the response; nil without refused resources
	// again is the time of the next retry in the same state; zero for none. tries counts the retries.
	again time.Time
	tries int
	// offers schedules the retries while the client is fetching code. retries means that another of these
	// retries follows.
	offers  transition.Offers
	retries bool
}

// removals are the delayed removals, which wait until the client no longer uses the resources.
type removals struct {
	// since is when the first delayed removal was due; zero for none.
	since time.Time
	// unknown are the resources that the client has from an earlier stream, by name, with the time at which
	// the server first found that the resource doesn't exist; zero before.
	unknown map[string]time.Time
}

// heartbeats tracks the client's resources with a TTL.
type heartbeats struct {
	// alive are the acknowledged resources with a TTL, by name, and state is the state of their response.
	alive map[string]*encoded
	state *state
	due   map[string]struct{} // names in alive with a heartbeat to send
}

// last is the last response and the last ACK or NACK.
type last struct {
	acknowledged string    // version of the last ACK
	sent         string    // version of the last response
	since        time.Time // time of the last response, ACK or NACK
	nack         *refusal  // nil after an ACK
}

// response is the content of one response.
type response struct {
	state *state
	// resources are sent, removed are the names that the response removes or reports missing.
	resources []*encoded
	removed   []string
	// absent are the details of the response's errors, by plain name.
	absent map[string]string
	// changed are the resources with a version that is new to the client, and the pending resources. asked
	// means that a name was pending.
	changed []*xds.Resource
	asked   bool
	// gone are the variants that an incremental response with constraints removes, by name.
	gone map[string][]params.Constraints
	// held is the next delivered.held. late are the client's versions of resources whose removal is delayed,
	// by name. doubtful means that the client may have another listener at the address of a listener.
	held     map[string]*xds.Resource
	late     map[string]string
	doubtful bool
	foreign  bool // from a state of another view
	// before and pending are the subscription's delivered and pending before this response.
	before  delivered
	pending pending
	// beat marks heartbeats, whole a response with all resources of the state.
	beat    bool
	whole   bool
	version string
	nonce   string
	// message is the response as the library gets it.
	message any
}

// lacks returns a response with the resources that the client lacks in a state, and with the names whose
// resources the state lacks. Stream.form completes the response.
func (s *subscription) lacks(now *state) *response {
	r := &response{state: now, version: now.Version(s.of), doubtful: s.at == nil}
	if s.at == nil && s.wildcard && len(s.versions)+len(s.names)+len(s.pending.names) == 0 {
		r.whole, r.asked, r.changed = true, true, now.Of(s.of)
		return r
	}
	there := make(map[*xds.Resource]struct{})
	for _, name := range s.outdated(now) {
		r.asked = r.asked || s.isPending(name)
		found := now.find(s.of, name)
		switch _, again := there[found]; {
		case found == nil && len(s.members(now, name)) > 0: // a collection; its members are reported
			r.asked = true
		case found == nil:
			r.removed = append(r.removed, name)
		case !again: // once, even with several aliases
			there[found] = struct{}{}
			r.changed = append(r.changed, found)
		}
	}
	return r
}

// outdated returns the names that a response must cover in a state, sorted.
func (s *subscription) outdated(now *state) []string {
	if s.at == now && len(s.versions)+len(s.pending.names) == 0 && !s.pending.all {
		return nil
	}
	names := make(map[string]struct{})
	for name := range s.versions {
		s.compare(now, name, names)
	}
	for name := range s.pending.names {
		s.compare(now, name, names)
		for _, r := range s.members(now, name) {
			if s.subscribes(r.Name) {
				names[r.Name] = struct{}{}
			}
		}
	}
	for _, name := range s.candidates(now) {
		s.compare(now, name, names)
	}
	return slices.Sorted(maps.Keys(names))
}

// compare adds a name to a set if a response must cover the name.
func (s *subscription) compare(now *state, name string, to map[string]struct{}) {
	if !s.subscribes(name) {
		return
	}
	if s.isPending(name) || !s.isRefused(name) && s.known(name) != now.version(s.of, name) {
		to[name] = struct{}{}
	}
}

// candidates returns names that may be outdated, besides versions and pending.
func (s *subscription) candidates(now *state) (names []string) {
	if s.at != nil {
		names = now.changedSince(s.at, s.of)
		if s.of == xds.VirtualHost && len(names) > 0 {
			names = slices.AppendSeq(names, maps.Keys(s.names)) // some names may be aliases
		}
		if !s.pending.all {
			return names
		}
	}
	names = slices.AppendSeq(names, maps.Keys(s.names))
	for name := range s.collections {
		for _, r := range s.members(now, name) {
			names = append(names, r.Name)
		}
	}
	if !s.wildcard {
		return names
	}
	for _, r := range now.Of(s.of) {
		names = append(names, r.Name)
	}
	return names
}

// isFirst reports whether the client must get a response even if the response is empty: the client subscribes
// to all resources, and has got no response since.
func (s *subscription) isFirst() bool {
	all := s.wildcard
	for name := range s.collections {
		all = all || plain(name) == "*"
	}
	return all && (s.at == nil || s.pending.all)
}

// names returns the names of the resources that the response covers.
func (r *response) names() []string {
	names := slices.Clone(r.removed)
	for _, changed := range r.changed {
		names = append(names, changed.Name)
	}
	return names
}

// subscribes reports whether the client subscribes to a resource.
func (s *subscription) subscribes(name string) bool {
	_, ok := s.names[name]
	return ok || s.wildcard || s.collects(name)
}

// busy reports whether a response waits for its ACK or NACK.
func (e *exchange) busy() bool { return e.made != nil || e.sent != nil }
