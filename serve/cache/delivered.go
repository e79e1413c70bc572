package cache

import (
	"slices"

	"xdspub/xds"
	"xdspub/xds/params"
)

// delivered holds the resources of one type that a client has, as far as the server knows, including
// responses in flight. assumeAccepted makes the next delivered. If the library drops the response before
// sending, drop restores the delivered before.
type delivered struct {
	// at is the state whose subscribed resources the client has; nil before the first response. versions are
	// the exceptions, by name: "" if the client lacks the resource, unsure if the client may have any version
	// or none.
	at       *state
	versions map[string]string
	// variants are the resources of which the client may have other variants than in at. Only clients with
	// resource locators have variants.
	variants map[string][]params.Constraints
	// held are the client's versions of resources that a response didn't update: listeners that wait for an
	// address, nil for a listener that the client lacks, and, in a state of the world, resources whose
	// removal is delayed.
	held map[string]*xds.Resource
	// yields is the listener to remove before refused listeners are sent again; "" for none.
	yields string
	// resumed means that the client has resources from an earlier stream, and has got no response on this
	// stream. strays means that the client may have resources that no response has had: in a state of the
	// world, a client doesn't list its resources from an earlier stream.
	resumed, strays bool
}

// unsure is a version that the client may or may not have.
const unsure = "?"

// pending are the names that the next response must cover, even if the client has their resources.
type pending struct {
	names map[string]struct{}
	all   bool // every subscribed name
}

// add adds the name of a resource, or of a collection, which stands for all its resources.
func (p *pending) add(name string) {
	if p.names == nil {
		p.names = make(map[string]struct{})
	}
	p.names[name] = struct{}{}
}

// merge adds the names of another pending.
func (p *pending) merge(other pending) {
	for name := range other.names {
		p.add(name)
	}
	p.all = p.all || other.all
}

// isPending reports whether the next response must cover a name.
func (s *subscription) isPending(name string) bool {
	if _, ok := s.pending.names[name]; ok || s.pending.all {
		return true
	}
	_, known := s.versions[name]
	return !known && s.at == nil
}

// known returns the client's version of a resource: "" if the client lacks the resource, unsure if the client
// may have any version or none.
func (s *subscription) known(name string) string { return s.delivered.known(s.of, name) }

func (d *delivered) known(of *xds.Type, name string) string {
	if version, ok := d.versions[name]; ok {
		return version
	}
	if d.at == nil {
		return ""
	}
	return d.at.version(of, name)
}

// mayHave reports whether the client may have any version of a resource.
func (s *subscription) mayHave(name string) bool { return s.known(name) != "" }

// doubt records that the server doesn't know the client's version of a resource.
func (s *subscription) doubt(name string) { s.versions[name] = unsure }

// replaceNames replaces the names that the client subscribes to. New names become pending. replaceNames
// forgets the errors of names that the client no longer subscribes to.
func (s *subscription) replaceNames(names map[string]struct{}, wildcard bool) {
	if s.names != nil { // otherwise every name is pending, because s.at is nil
		s.pending.all = s.pending.all || wildcard && !s.wildcard
		flying := make(map[string]bool) // resources in flight
		for _, r := range s.inFlight() {
			for _, is := range r.changed {
				flying[is.Name] = true
			}
		}
		if wildcard && !s.wildcard && s.at != nil {
			for _, r := range s.at.Of(s.of) {
				s.recordLacking(r.Name, flying)
			}
		}
		for name := range names {
			if _, before := s.names[name]; !before {
				s.recordLacking(name, flying)
				s.pending.add(name)
				s.requeueError(plain(name))
			}
		}
	}
	s.names, s.wildcard = names, wildcard
	for name := range s.absent {
		if !s.subscribesByName(name) {
			delete(s.absent, name)
		}
	}
}

// recordLacking records that the client lacks the resource of a new name. A client drops the resources that it
// doesn't subscribe to. A resource in flight may still come.
func (s *subscription) recordLacking(name string, flying map[string]bool) {
	if s.at == nil || s.subscribes(name) || flying[name] {
		return
	}
	s.versions[name] = ""
	for _, r := range s.inFlight() {
		if !r.beat {
			r.before.versions[name] = "" // after a NACK the client still lacks the resource
		}
	}
}

// assumeAccepted makes the delivered and the pending of a client that has accepted a response. The library
// has only got the response to send; answered corrects the assumption after a NACK.
func (s *subscription) assumeAccepted(r *response) {
	r.before, r.pending = s.delivered, s.pending
	next := delivered{at: r.state, versions: make(map[string]string), variants: make(map[string][]params.Constraints), held: r.held}
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
	var stillPending pending
	later := func(name, version string) {
		next.versions[name] = version
		if s.isPending(name) {
			stillPending.add(name)
		}
	}
	for name, version := range r.late {
		later(name, version)
		if of := s.variantsOf(name); len(of) > 0 {
			next.variants[name] = of // of the state before
		}
	}
	for name, was := range r.held {
		if was == nil {
			version := ""
			if s.stream.kind.delta() && !slices.Contains(r.removed, name) {
				version = s.known(name) // an incremental response doesn't change the client's version
			}
			later(name, version)
			stillPending.add(name)
			continue
		}
		later(name, was.Version())
	}
	for name, of := range s.variants {
		if s.subscribes(name) {
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
	s.delivered, s.pending = next, stillPending
}

// drop records that the response in made will not be sent.
func (s *subscription) drop() {
	r := s.made
	if s.made = nil; r == nil || r.beat {
		return
	}
	if !r.foreign { // otherwise carryOver has replaced delivered
		s.delivered = r.before
	}
	s.pending.merge(r.pending)
}

// answered records which resources the client has after its ACK or NACK of a response.
func (s *subscription) answered(r *response, refused bool) {
	s.recordErrors(r, refused)
	if r.foreign { // carryOver has marked these resources unsure
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

// carryOver handles a change of the view: the client's resources now count as resources of an earlier stream.
// The keys of versions and variants are the names in the new view.
func (s *subscription) carryOver(versions map[string]string, variants map[string][]params.Constraints) {
	s.delivered = delivered{versions: versions, variants: variants, resumed: s.resumed, strays: s.strays}
	s.heartbeats.state = nil
	s.unpark()
	clear(s.heartbeats.alive)
	clear(s.heartbeats.due)
	for _, r := range s.inFlight() {
		r.foreign = true
	}
}

// inFlight returns the responses without an ACK or NACK.
func (e *exchange) inFlight() []*response {
	return slices.DeleteFunc([]*response{e.made, e.sent}, func(r *response) bool { return r == nil })
}

// hadNames returns the names of the resources that the client may have.
func (s *subscription) hadNames() map[string]struct{} {
	names := make(map[string]struct{})
	for name := range s.versions {
		names[name] = struct{}{}
	}
	if s.at != nil {
		for _, r := range s.at.Of(s.of) {
			if s.subscribes(r.Name) {
				names[r.Name] = struct{}{}
			}
		}
	}
	return names
}
