package cache

import (
	"maps"
	"slices"
	"time"

	"xdspub/xds"
	"xdspub/xds/params"
)

// subscription is what a client has asked for of one type, and what it was told.
type subscription struct {
	of *xds.Type
	// names are those that the client has asked for; wildcard means that it has asked for all,
	// be names given or not.
	names    map[string]struct{}
	wildcard bool
	// collections are those of the names that are collections; mostly nil.
	collections map[string]struct{}
	several     *several // nil for a client with one set of parameters

	// The client has what at holds of all that it asked for; nil before the first response.
	// But of the resources of has it has that version, and was told nothing if that is "".
	at  *state
	has map[string]string
	// unsure means that the client may have resources beside those: from a stream before, or since
	// it refused a response. Only state of the world asks.
	unsure bool

	// answer sends a response; nil while the server does not wait for one.
	answer func(*response)
	// made is a response that was handed to answer and is not sent yet, sent one that the
	// client has not acknowledged yet.
	made, sent *response
	// refused are the resources of responses that the client refused, by name; they are sent once
	// more as a part of the state after parked, or of that state where there is hope: at again,
	// after as many tries.
	refused map[string]struct{}
	parked  *state
	again   time.Time
	tries   int
	// yields is the listener that goes before what the client refused is sent once more; "" for none.
	yields string

	// held are the listeners that wait for an address, and what a state of the world still has although
	// it is gone, as the client has them; nil for a listener that it lacks. removesSince is when the
	// removals that are told later would have been told; zero where there are none. resumed means that the client has resources from a stream before, and has not been told
	// anything by this one.
	held         map[string]*xds.Resource
	removesSince time.Time
	resumed      bool

	// alive are the resources with a TTL that the client has taken, as it has them, in a response
	// of the state taken; due are those whose heartbeat is to be sent.
	alive map[string]*encoded
	due   map[string]struct{}
	taken *state

	// acknowledged is the version of the last response that the client has taken, sentVersion that
	// of the last one that was sent; since is when that was sent or answered.
	acknowledged, sentVersion string
	since                     time.Time
	refusal                   *refusal // the last answer, where that was a NACK

	// had are the variants of resources that the client may have, where it has not taken one in place
	// of another. Only clients that locate have any.
	had map[string][]params.Constraints
}

// response is what a client is to be told, in one message.
type response struct {
	state *state
	// resources are those that are sent, removed the names that are told to be gone, by an
	// incremental response.
	resources []*encoded
	removed   []string
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
	// beat means that the resources are heartbeats, whole that they are all of the state.
	beat    bool
	whole   bool
	version string
	nonce   string
	// message is the response as the server sends it.
	message any
}

// ask takes over what the client asks for from now on.
func (s *subscription) ask(names map[string]struct{}, wildcard bool) {
	if wildcard && !s.wildcard {
		s.forgetAll()
	}
	s.names, s.wildcard = names, wildcard
}

// forget makes a resource one that the client was told nothing about.
func (s *subscription) forget(name string) { s.has[name] = "" }

// doubt makes a resource one of which the client may have any version, or none.
func (s *subscription) doubt(name string) { s.has[name] = "?" }

// forgetAll makes the client one that was told nothing, and has something of what it asked for.
func (s *subscription) forgetAll() {
	for name := range s.names {
		s.forgetAsked(name)
	}
	if s.wildcard && s.at != nil {
		for _, r := range s.at.Of(s.of) {
			s.forget(r.Name)
		}
	}
	for name := range s.has {
		s.forget(name)
	}
	s.keepVariants()
	s.at, s.unsure = nil, true
}

// known returns the version that the client has of a resource, "" for none. told reports
// whether it was told about it at all.
func (s *subscription) known(name string) (version string, told bool) {
	if version, ok := s.has[name]; ok {
		return version, version != ""
	}
	if s.at == nil {
		return "", false
	}
	return s.at.version(s.of, name), true
}

// tells takes down that a response leaves for the client.
func (s *subscription) tells(r *response) {
	for name := range r.late { // by the state before
		if of := s.variants(name); len(of) > 0 {
			s.had[name] = of
		}
	}
	s.at, s.held, s.resumed, s.yields = r.state, r.held, false, ""
	clear(s.has)
	maps.Copy(s.has, r.late)
	for name, was := range r.held {
		if s.has[name] = ""; was != nil {
			s.has[name] = was.Version()
		}
	}
	for _, name := range r.names() {
		delete(s.refused, name)
	}
}

// lacks returns what the client lacks in a state, and what it has that is gone.
func (s *subscription) lacks(now *state) *response {
	r := &response{state: now, version: now.Version(s.of), doubtful: s.at == nil}
	if s.at == nil && s.wildcard && len(s.has)+len(s.names) == 0 {
		r.whole, r.asked, r.changed = true, true, now.Of(s.of)
		return r
	}
	there := make(map[*xds.Resource]struct{})
	for _, name := range s.outdated(now) {
		_, told := s.known(name)
		r.asked = r.asked || !told
		found := now.find(s.of, name)
		switch _, again := there[found]; {
		case found == nil && len(s.members(now, name)) > 0: // a collection: what it has is told
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
	if s.at == now && len(s.has) == 0 {
		return nil
	}
	names := make(map[string]struct{})
	for name := range s.has {
		s.compare(now, name, names)
	}
	for _, name := range s.candidates(now) {
		s.compare(now, name, names)
	}
	return slices.Sorted(maps.Keys(names))
}

// compare adds a name to a set where the client is to be told about it.
func (s *subscription) compare(now *state, name string, to map[string]struct{}) {
	if !s.asks(name) {
		return
	}
	version := now.version(s.of, name)
	if known, told := s.known(name); !told || known != version {
		to[name] = struct{}{}
	}
}

// candidates returns the names that may be outdated, beside those of has.
func (s *subscription) candidates(now *state) []string {
	if s.at != nil {
		changed := now.changedSince(s.at, s.of)
		if s.of != xds.VirtualHost || len(changed) == 0 {
			return changed
		}
		return slices.AppendSeq(changed, maps.Keys(s.names)) // some may be aliases
	}
	names := slices.Collect(maps.Keys(s.names))
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
func (s *subscription) busy() bool { return s.made != nil || s.sent != nil }
