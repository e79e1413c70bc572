package cache

import (
	"maps"
	"slices"
	"time"

	"xdspub/validate/transition"
	"xdspub/xds"
	"xdspub/xds/params"
)

// subscription is what a client has asked for of one type, and what it was told.
type subscription struct {
	of *xds.Type
	resourceNames
	several *several // nil for a client with one set of parameters
	stream  *Stream

	told
	owed owed
	// absent has the details of the errors that the client knows by its answers, by the names of the resources: "" if
	// the client is to be told, once there is no such resource.
	absent map[string]string

	exchange
	nack       nack
	removals   removals
	heartbeats heartbeats
	last       last
	gap        bool // the client has a gap, which was reported
}

func newSubscription(of *xds.Type, s *Stream) *subscription {
	return &subscription{
		of: of, stream: s, told: told{versions: make(map[string]string)}, absent: make(map[string]string),
		nack:       nack{names: make(map[string]struct{}), errors: make(map[string]string)},
		removals:   removals{unknown: make(map[string]time.Time)},
		heartbeats: heartbeats{alive: make(map[string]*encoded), due: make(map[string]struct{})},
	}
}

// resourceNames are those of the last request of a client.
type resourceNames struct {
	// wildcard means that the client has asked for all resources, be names given or not.
	names    map[string]struct{}
	wildcard bool
	// legacy means that the client has asked for all by an empty list. Only state of the world asks.
	legacy bool
	// collections are those of the names that are collections; mostly nil.
	collections map[string]struct{}
}

// exchange is the request that the server has not answered, and the responses that the client has not
// acknowledged.
type exchange struct {
	// answer sends a response; nil while the client owes the server a request.
	answer func(*response)
	// nonce is that of the last response that was sent.
	nonce string
	// made is a response that was handed to answer and is not sent yet. The client has not acknowledged
	// sent yet.
	made, sent *response
}

// nack is what the client gets again after a NACK: in the next state, or in the same state if the reason of
// the NACK may pass.
type nack struct {
	// names are the resources that the client refused, errors the details of the errors, by names.
	names  map[string]struct{}
	errors map[string]string
	state  *state // of the response; nil if nothing was refused
	// again is the time of the next try in the same state, after a number of tries; zero for no try.
	again time.Time
	tries int
	// offers are those of a response that the client rejects until it has fetched code; retries means that
	// another offer comes.
	offers  transition.Offers
	retries bool
}

// removals are the removals that wait until the client no longer uses the resources.
type removals struct {
	// since is when the first of them would have been sent; zero if none waits.
	since time.Time
	// unknown are the resources that the client has from a stream before, by name, and when the server
	// noticed that they do not exist; zero until there is a state.
	unknown map[string]time.Time
}

// heartbeats are those of resources with a TTL.
type heartbeats struct {
	// alive are the resources that the client has taken from a response of state.
	alive map[string]*encoded
	due   map[string]struct{} // names of alive whose heartbeat has to be sent
	state *state
}

// last is the last response, and the last answer of the client.
type last struct {
	acknowledged string // the version of the last ACK
	sent         string // the version of the last response
	since        time.Time
	nack         *refusal // nil if the last answer was an ACK
}

// response is what a client is to be told, in one message.
type response struct {
	state *state
	// resources are those that are sent, removed the names that are told to be gone or absent.
	resources []*encoded
	removed   []string
	// absent has the details of the errors of the response, by the names without what tells a set of parameters.
	absent map[string]string
	// changed are those of the resources that the client does not have like that. asked means
	// that it was told nothing about one of them.
	changed []*xds.Resource
	asked   bool
	// gone are the variants that an incremental response to a client that locates takes from it, by name.
	gone map[string][]params.Constraints
	// held are as those of the subscription, late the versions of resources whose removal the client
	// is told later. doubtful means that at the address of a listener the client may have another.
	held     map[string]*xds.Resource
	late     map[string]string
	doubtful bool
	foreign  bool // it was made of a state of another view
	// before is what the client had when the response was handed over, owed what it was owed.
	before told
	owed   owed
	// beat means that the resources are heartbeats, whole that they are all of the state.
	beat    bool
	whole   bool
	version string
	nonce   string
	// message is the response as the server sends it.
	message any
}

// lacks returns what the client lacks in a state, and what it has that is gone.
func (s *subscription) lacks(now *state) *response {
	r := &response{state: now, version: now.Version(s.of), doubtful: s.at == nil}
	if s.at == nil && s.wildcard && len(s.versions)+len(s.names)+len(s.owed.names) == 0 {
		r.whole, r.asked, r.changed = true, true, now.Of(s.of)
		return r
	}
	there := make(map[*xds.Resource]struct{})
	for _, name := range s.outdated(now) {
		r.asked = r.asked || s.isOwed(name)
		found := now.find(s.of, name)
		switch _, again := there[found]; {
		case found == nil && len(s.members(now, name)) > 0: // a collection: what it has is told
			r.asked = true
		case found == nil:
			r.removed = append(r.removed, name)
		case !again: // by an alias as well
			there[found] = struct{}{}
			r.changed = append(r.changed, found)
		}
	}
	return r
}

// outdated returns the names that the client is to be told about in a state, sorted.
func (s *subscription) outdated(now *state) []string {
	if s.at == now && len(s.versions)+len(s.owed.names) == 0 && !s.owed.all {
		return nil
	}
	names := make(map[string]struct{})
	for name := range s.versions {
		s.compare(now, name, names)
	}
	for name := range s.owed.names {
		s.compare(now, name, names)
		for _, r := range s.members(now, name) {
			if s.asks(r.Name) {
				names[r.Name] = struct{}{}
			}
		}
	}
	for _, name := range s.candidates(now) {
		s.compare(now, name, names)
	}
	return slices.Sorted(maps.Keys(names))
}

// compare adds a name to a set if the client is to be told about it.
func (s *subscription) compare(now *state, name string, to map[string]struct{}) {
	if !s.asks(name) {
		return
	}
	if s.isOwed(name) || !s.isRefused(name) && s.known(name) != now.version(s.of, name) {
		to[name] = struct{}{}
	}
}

// candidates returns the names that may be outdated, beside those of versions and owed.
func (s *subscription) candidates(now *state) (names []string) {
	if s.at != nil {
		names = now.changedSince(s.at, s.of)
		if s.of == xds.VirtualHost && len(names) > 0 {
			names = slices.AppendSeq(names, maps.Keys(s.names)) // some may be aliases
		}
		if !s.owed.all {
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

// isFirst reports whether the client is to be answered even if there is nothing: it asks for all, and was
// not answered yet.
func (s *subscription) isFirst() bool {
	all := s.wildcard
	for name := range s.collections {
		all = all || plain(name) == "*"
	}
	return all && (s.at == nil || s.owed.all)
}

// names returns the resources that the response is about.
func (r *response) names() []string {
	names := slices.Clone(r.removed)
	for _, changed := range r.changed {
		names = append(names, changed.Name)
	}
	return names
}

// asks reports whether the client has asked for a resource by that name.
func (s *subscription) asks(name string) bool {
	_, ok := s.names[name]
	return ok || s.wildcard || s.collects(name)
}

// busy reports whether the client has not acknowledged what it was sent.
func (e *exchange) busy() bool { return e.made != nil || e.sent != nil }
