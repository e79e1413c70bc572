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

// xRFC TP3 requires an error for each resource that the client subscribes to by name and that doesn't exist
// for the client. The client remembers the error until a response has the resource or another error. So the
// server sends an error once per subscription to the name, and again if the reason changes. Only ACKs tell
// the server which errors the client knows (recordErrors); a response in flight changes nothing.
// https://github.com/cncf/xds/blob/main/proposals/TP3-xds-error-propagation.md

// mostErrors is the largest number of errors in a response, which must fit into a message. Further missing
// names get no error.
const mostErrors = 10_000

// The details of errors. They name no variant and no parameter, which may belong to other clients.
const (
	notThere  = "the server has no resource of this name"
	noVariant = "the server has this resource, but no variant for the dynamic parameters of this client"
)

// absence returns the details of a response's errors, by name. While Publish changes the resources, absence
// returns nil and queues the errors. A collection without resources is not an error. Virtual hosts have no
// errors: the server answers a missing virtual host with a resource without a body, which would clear the
// error.
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
	for name := range s.absent { // the reason may have changed
		if r.delays(name) || !s.lacksByName(name, r.state) {
			continue
		}
		if detail := s.detail(name); detail != s.nack.errors[name] {
			errors[name] = detail
		}
	}
	maps.DeleteFunc(errors, func(name, detail string) bool { return s.absent[name] == detail })
	if len(errors) > 0 && s.stream.between() {
		for name := range errors {
			s.queueError(name)
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

// lacksByName reports whether the client subscribes to a resource by name, and a state has no such resource
// for the client.
func (s *subscription) lacksByName(name string, now *state) bool {
	return name != "*" && !xdstp.IsCollection(name) && s.subscribesByName(name) && now.find(s.of, name) == nil && !s.hasOther(name, now)
}

// detail returns why the client lacks a resource. For secrets the detail is always the same, so that a client
// can't learn of secrets for other clients.
func (s *subscription) detail(name string) string {
	if all := s.stream.cache.all.Load(); s.of != xds.Secret && all != nil && all.Lookup(s.of, name) != nil {
		return noVariant
	}
	return notThere
}

// recordErrors records which errors the client knows after its ACK or NACK of a response. A client may use
// some of the resources and errors of a response that it refuses. So the server sends the errors of their
// names again.
func (s *subscription) recordErrors(r *response, refused bool) {
	for name, detail := range r.absent {
		if refused {
			detail = ""
		}
		if s.subscribesByName(name) {
			s.absent[name] = detail
		}
	}
	for _, is := range r.changed {
		name := plain(is.Name)
		if _, known := s.absent[name]; !known {
			continue
		}
		if refused || !s.subscribes(is.Name) {
			s.absent[name] = ""
		} else {
			delete(s.absent, name)
		}
	}
}

// delays reports whether a response delays the change or the removal of a resource.
func (r *response) delays(name string) bool {
	_, late := r.late[name]
	_, held := r.held[name]
	return late || held
}

// requeueError queues the error of a name again, if the client knows an error of the name. The ACK of an
// error in flight doesn't make the error known.
func (s *subscription) requeueError(name string) {
	if _, known := s.absent[name]; known {
		s.absent[name] = ""
	}
	for _, r := range s.inFlight() {
		delete(r.absent, name) // the client may get this error before its new request
	}
}

// queueError queues the error of a name for the next response, unless the client knows an error of the name.
func (s *subscription) queueError(name string) {
	if _, known := s.absent[name]; !known {
		s.absent[name] = ""
	}
}

// subscribesByName reports whether the client subscribes to a resource by its name, not by a collection or the
// wildcard.
func (s *subscription) subscribesByName(name string) (ok bool) {
	if s.several != nil {
		return len(s.several.asked[name]) > 0
	}
	_, ok = s.names[name]
	return ok
}

// errors returns the errors of a response in the client's spelling, sorted by name.
func (s *Stream) errors(sub *subscription, r *response) (list []*discoveryv3.ResourceError) {
	for _, name := range slices.Sorted(maps.Keys(r.absent)) {
		list = append(list, &discoveryv3.ResourceError{
			ResourceName: &discoveryv3.ResourceName{Name: s.asked(sub.of, name)},
			ErrorDetail:  &status.Status{Code: int32(codes.NotFound), Message: r.absent[name]},
		})
	}
	return list
}

// othersMatter reports whether changes of other clients' resources may concern the client, because the client
// has an error or a gap.
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

// asked returns the client's spelling of a name.
func (s *Stream) asked(t *xds.Type, name string) string {
	if is := s.spelled[t]; is != nil && is.aliases[name] != "" {
		return is.aliases[name]
	}
	return name
}
