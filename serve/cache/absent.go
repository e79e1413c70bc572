package cache

import (
	"maps"
	"slices"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"

	"xdspub/xds"
	"xdspub/xds/xdstp"
)

// xRFC TP3 has the server send an error for each resource that the client asks for by name and cannot get. The
// client remembers the error until a response has the resource, or another error. So the server sends an error
// once for each subscription to the name, and again if the reason changes. What the client knows follows from its
// answers alone (learns): a response in flight changes nothing.
// https://github.com/cncf/xds/blob/main/proposals/TP3-xds-error-propagation.md

// mostErrors bounds the errors in a response, which would not fit into a message otherwise. A client that asks
// for more names that do not exist gets no error for the others.
const mostErrors = 10_000

// The details of errors. They name no variant and no parameter: these may belong to other clients.
const (
	notThere  = "the server has no resource of this name"
	noVariant = "the server has this resource, but no variant for the dynamic parameters of this client"
)

// absence returns the details of the errors that a response has, by the names. A collection without resources
// is no error. The server answers for a virtual host that does not exist with a resource without a body, which
// would clear the error.
func (s *subscription) absence(r *response) map[string]string {
	if s.of == xds.VirtualHost {
		return nil
	}
	errors := make(map[string]string)
	for _, removed := range r.removed {
		if name := plain(removed); s.lacksByName(name, r.state) {
			errors[name] = s.detail(name)
		}
	}
	for name := range s.absent { // the reason may be another one
		if r.keeps(name) || !s.lacksByName(name, r.state) {
			continue
		}
		if detail := s.detail(name); detail != s.nack.errors[name] {
			errors[name] = detail
		}
	}
	maps.DeleteFunc(errors, func(name, detail string) bool { return s.absent[name] == detail })
	if len(errors) > 0 && s.stream.between() {
		for name := range errors {
			s.owesError(name)
		}
		return nil
	}
	if len(errors) > mostErrors {
		for _, name := range slices.Sorted(maps.Keys(errors))[mostErrors:] {
			delete(errors, name)
		}
	}
	return errors
}

// lacksByName reports whether the client asks for a resource by its name, and a state has none for the client.
func (s *subscription) lacksByName(name string, now *state) bool {
	return name != "*" && !xdstp.IsCollection(name) && s.asksByName(name) && now.find(s.of, name) == nil && !s.hasOther(name, now)
}

// detail returns why the client cannot get a resource. A client must not find out whether a secret exists that
// is not for the client.
func (s *subscription) detail(name string) string {
	if all := s.stream.cache.all.Load(); s.of != xds.Secret && all != nil && all.Lookup(s.of, name) != nil {
		return noVariant
	}
	return notThere
}

// learns takes down which errors the client knows after an answer to a response. A client that refuses a response
// may take some of its resources and errors.
func (s *subscription) learns(r *response, refused bool) {
	for name, detail := range r.absent {
		if refused {
			detail = ""
		}
		if s.asksByName(name) {
			s.absent[name] = detail
		}
	}
	for _, is := range r.changed {
		name := plain(is.Name)
		if _, told := s.absent[name]; !told {
			continue
		}
		if refused || !s.asks(is.Name) {
			s.absent[name] = ""
		} else {
			delete(s.absent, name)
		}
	}
}

// keeps reports whether the client hears later of the removal of a resource.
func (r *response) keeps(name string) bool {
	_, late := r.late[name]
	_, held := r.held[name]
	return late || held
}

// repeatsError owes the client the error of a name again, if the client knows an error of the name.
func (s *subscription) repeatsError(name string) {
	if _, told := s.absent[name]; told {
		s.absent[name] = ""
	}
	for _, r := range s.inFlight() {
		delete(r.absent, name) // the client may hear this error before it asks again
	}
}

// owesError owes the client an error of a name, if the client knows no error of the name.
func (s *subscription) owesError(name string) {
	if _, told := s.absent[name]; !told {
		s.absent[name] = ""
	}
}

// asksByName reports whether the client asks for a resource by its name, not by a collection or the wildcard.
func (s *subscription) asksByName(name string) (ok bool) {
	if s.several != nil {
		return len(s.several.asked[name]) > 0
	}
	_, ok = s.names[name]
	return ok
}

// errors returns the errors of a response to the client, sorted by the names.
func (s *Stream) errors(sub *subscription, r *response) (list []*discoveryv3.ResourceError) {
	for _, name := range slices.Sorted(maps.Keys(r.absent)) {
		list = append(list, &discoveryv3.ResourceError{
			ResourceName: &discoveryv3.ResourceName{Name: s.asked(sub.of, name)},
			ErrorDetail:  &status.Status{Code: int32(codes.NotFound), Message: r.absent[name]},
		})
	}
	return list
}

// othersMatter reports whether the resources of other clients may change what the client is told: the client has
// an error or a gap.
func (s *Stream) othersMatter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sub := range s.subscriptions {
		if len(sub.absent) > 0 || sub.gap {
			return true
		}
	}
	return false
}

// asked returns the spelling of a name by which the client asks.
func (s *Stream) asked(t *xds.Type, name string) string {
	if is := s.spelled[t]; is != nil && is.otherwise[name] != "" {
		return is.otherwise[name]
	}
	return name
}
