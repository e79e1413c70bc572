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
// client remembers the error until a response has the resource. So the server sends the error once.
// https://github.com/cncf/xds/blob/main/proposals/TP3-xds-error-propagation.md

// mostErrors bounds the errors in a response, which would not fit into a message otherwise. A client that asks
// for more names that do not exist gets no error for the others.
const mostErrors = 10_000

// The details of errors. They name no variant and no parameter: these may belong to other clients.
const (
	notThere  = "the server has no resource of this name"
	noVariant = "the server has this resource, but no variant for the dynamic parameters of this client"
)

// absent returns the names that the client asks for and that a response tells to be absent, sorted. A collection
// without resources is no error. The server answers for a virtual host that does not exist with a resource
// without a body, which would clear the error.
func (s *subscription) absent(r *response) []string {
	names := make(map[string]struct{})
	for _, removed := range r.removed {
		name := plain(removed)
		if s.of != xds.VirtualHost && name != "*" && !xdstp.IsCollection(name) && s.asksByName(name) && !s.hasOther(name, r.state) {
			names[name] = struct{}{}
		}
	}
	list := slices.Sorted(maps.Keys(names))
	return list[:min(len(list), mostErrors)]
}

// asksByName reports whether the client asks for a resource by its name, not by a collection or the wildcard.
func (s *subscription) asksByName(name string) bool {
	if _, ok := s.names[name]; ok || s.several == nil {
		return ok
	}
	for asked := range s.names { // each with the set of parameters that it is of
		if plain(asked) == name {
			return true
		}
	}
	return false
}

// errors returns the errors of a response to the client.
func (s *Stream) errors(sub *subscription, r *response) (list []*discoveryv3.ResourceError) {
	all := s.cache.all.Load()
	for _, name := range r.absent {
		detail := notThere
		// A client must not find out whether a secret exists that is not for the client.
		if sub.of != xds.Secret && all != nil && all.Lookup(sub.of, name) != nil {
			detail = noVariant
		}
		list = append(list, &discoveryv3.ResourceError{
			ResourceName: &discoveryv3.ResourceName{Name: s.asked(sub.of, name)},
			ErrorDetail:  &status.Status{Code: int32(codes.NotFound), Message: detail},
		})
	}
	return list
}

// asked returns the spelling of a name by which the client asks.
func (s *Stream) asked(t *xds.Type, name string) string {
	if is := s.spelled[t]; is != nil && is.otherwise[name] != "" {
		return is.otherwise[name]
	}
	return name
}
