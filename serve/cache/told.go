package cache

import (
	"slices"

	"xdspub/xds"
	"xdspub/xds/params"
)

// told is what a client has of one type, as far as the server knows: what the client has acknowledged, and
// what is on the way to it. A response that is handed over makes a new told; a response that is dropped
// before it is sent brings back the told before.
type told struct {
	// at is the state of which the client has all that it asks for; nil before the first response.
	// versions has the resources of which the client has another version than that of at: "" if it has
	// none, unsure if it may have any version or none.
	at       *state
	versions map[string]string
	// variants has the resources of which the client may have other variants than that of at. Only
	// clients that locate have any.
	variants map[string][]params.Constraints
	// held has the resources that a response left as the client has them: listeners that wait for an
	// address, nil for a listener that the client lacks, and what a state of the world still has although
	// the snapshot has it no longer.
	held map[string]*xds.Resource
	// yields is the listener that goes before the client is sent once more what it refused; "" for none.
	yields string
	// resumed means that the client has resources from a stream before, and that this stream has not told
	// it anything. strays means that the client may have resources that no response has had: by state of
	// the world, it does not say which it has from a stream before.
	resumed, strays bool
}

// unsure stands for a version that the client may have or not.
const unsure = "?"

// owed is what a client is to be told in any case, whatever it has.
type owed struct {
	names map[string]struct{}
	all   bool // that it asks for
}

// owe adds what the client asks for by a name: a resource, or a collection and the resources in it.
func (o *owed) owe(name string) {
	if o.names == nil {
		o.names = make(map[string]struct{})
	}
	o.names[name] = struct{}{}
}

// merge adds what another owed has.
func (o *owed) merge(other owed) {
	for name := range other.names {
		o.owe(name)
	}
	o.all = o.all || other.all
}

// isOwed reports whether the client is to be told about a name in any case.
func (s *subscription) isOwed(name string) bool {
	if _, ok := s.owed.names[name]; ok || s.owed.all {
		return true
	}
	_, known := s.versions[name]
	return !known && s.at == nil
}

// known returns the version that the client has of a resource: "" for none, unsure for any or none.
func (s *subscription) known(name string) string { return s.told.known(s.of, name) }

func (t *told) known(of *xds.Type, name string) string {
	if version, ok := t.versions[name]; ok {
		return version
	}
	if t.at == nil {
		return ""
	}
	return t.at.version(of, name)
}

// mayHave reports whether the client may have a resource in any version.
func (s *subscription) mayHave(name string) bool { return s.known(name) != "" }

// doubt makes a resource one of which the client may have any version or none.
func (s *subscription) doubt(name string) { s.versions[name] = unsure }

// ask takes over what the client asks for from now on. What is new the client is owed.
func (s *subscription) ask(names map[string]struct{}, wildcard bool) {
	if s.names != nil { // else the client is owed all of that, as s.at is nil
		s.owed.all = s.owed.all || wildcard && !s.wildcard
		flying := make(map[string]bool) // resources on the way to the client
		for _, r := range s.inFlight() {
			for _, is := range r.changed {
				flying[is.Name] = true
			}
		}
		if wildcard && !s.wildcard && s.at != nil {
			for _, r := range s.at.Of(s.of) {
				s.begins(r.Name, flying)
			}
		}
		for name := range names {
			if _, before := s.names[name]; !before {
				s.begins(name, flying)
				s.owed.owe(name)
				s.repeatsError(plain(name))
			}
		}
	}
	s.names, s.wildcard = names, wildcard
	for name := range s.absent {
		if !s.asksByName(name) {
			delete(s.absent, name)
		}
	}
}

// begins takes down that the client asks for a name from now on. If the client did not ask for the resource until now, the
// client has never had the resource, or has given the resource up, unless the resource is flying to the client.
func (s *subscription) begins(name string, flying map[string]bool) {
	if s.at == nil || s.asks(name) || flying[name] {
		return
	}
	s.versions[name] = ""
	for _, r := range s.inFlight() {
		if !r.beat {
			r.before.versions[name] = "" // if the client refuses the response, the client still has nothing
		}
	}
}

// tells takes down that a response was handed over to be sent. The client is taken to accept it; answered
// takes down if not.
func (s *subscription) tells(r *response) {
	r.before, r.owed = s.told, s.owed
	next := told{at: r.state, versions: make(map[string]string), variants: make(map[string][]params.Constraints), held: r.held}
	for name := range r.absent {
		delete(s.nack.errors, name)
	}
	for _, name := range r.names() {
		delete(s.nack.names, name)
		delete(s.removals.unknown, name)
	}
	for name := range s.nack.names {
		next.versions[name] = s.known(name)
	}
	var owes owed
	later := func(name, version string) {
		next.versions[name] = version
		if s.isOwed(name) {
			owes.owe(name)
		}
	}
	for name, version := range r.late {
		later(name, version)
		if of := s.variantsOf(name); len(of) > 0 {
			next.variants[name] = of // those of the state before
		}
	}
	for name, was := range r.held {
		if was == nil {
			version := ""
			if s.stream.kind.delta() && !slices.Contains(r.removed, name) {
				version = s.known(name) // an incremental response leaves what the client has
			}
			later(name, version)
			owes.owe(name)
			continue
		}
		later(name, was.Version())
	}
	for name, of := range s.variants {
		if s.asks(name) {
			next.variants[name] = of
		}
	}
	for name, gone := range r.gone {
		next.variants[name] = gone
	}
	for _, is := range r.changed {
		if gone, ok := r.gone[is.Name]; ok {
			next.variants[is.Name] = append(slices.Clone(gone), is.For)
		}
	}
	s.told, s.owed = next, owes
}

// drop takes down that the response that was handed over is not sent.
func (s *subscription) drop() {
	r := s.made
	if s.made = nil; r == nil || r.beat {
		return
	}
	if !r.foreign { // carryOver has replaced told otherwise
		s.told = r.before
	}
	s.owed.merge(r.owed)
}

// answered takes down which resources the client has, once it has answered a response.
func (s *subscription) answered(r *response, refused bool) {
	s.learns(r, refused)
	if r.foreign { // carryOver doubts these resources
		return
	}
	s.strays = s.strays || refused && r.before.strays
	if !refused {
		for _, name := range r.names() {
			delete(s.variants, name)
		}
		return
	}
	for _, is := range r.changed {
		s.doubt(is.Name)
	}
	for _, name := range r.removed {
		if r.before.known(s.of, name) != "" {
			s.doubt(name)
		} else {
			delete(s.variants, name)
		}
	}
}

// carryOver makes what the client has something of a stream before: from now on, what it gets is made of
// other states. versions and variants are those of told, by the names of these states.
func (s *subscription) carryOver(versions map[string]string, variants map[string][]params.Constraints) {
	s.told = told{versions: versions, variants: variants, resumed: s.resumed, strays: s.strays}
	s.heartbeats.state = nil
	s.unpark()
	clear(s.heartbeats.alive)
	clear(s.heartbeats.due)
	for _, r := range s.inFlight() {
		r.foreign = true
	}
}

// inFlight returns the responses that the client has not answered: it may take them, or refuse them.
func (e *exchange) inFlight() []*response {
	return slices.DeleteFunc([]*response{e.made, e.sent}, func(r *response) bool { return r == nil })
}

// hadNames returns the names of the resources of which the client may have something.
func (s *subscription) hadNames() map[string]struct{} {
	names := make(map[string]struct{})
	for name := range s.versions {
		names[name] = struct{}{}
	}
	if s.at != nil {
		for _, r := range s.at.Of(s.of) {
			if s.asks(r.Name) {
				names[r.Name] = struct{}{}
			}
		}
	}
	return names
}
