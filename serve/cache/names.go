package cache

import (
	"slices"
	"sort"
	"strings"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"xdspub/xds"
	"xdspub/xds/xdstp"
)

// The Cache knows xdstp names by their canonical spelling, in which the library gets what a client
// asks for. Errors and incremental responses have the name that the client asked by. Resources by state of the
// world have their own names.

// spelled are the xdstp names of a type that a client asks for.
type spelled struct {
	// otherwise are those that it spells in another way, by the canonical one.
	otherwise map[string]string
	// collections means that it asks for one, or has.
	collections bool
}

// hasURLs returns the type of a request, and whether one of its names is an xdstp one. Virtual hosts
// have two names in one, and no such names.
func hasURLs(typeURL string, names []string) (*xds.Type, bool) {
	if !slices.ContainsFunc(names, xdstp.Is) {
		return nil, false
	}
	t := xds.TypeOfURL(typeURL)
	return t, t != nil && t != xds.VirtualHost
}

// spell gives names that a client asks for their canonical spelling, and takes down how it spells
// them.
func (s *Stream) spell(typeURL string, names []string) {
	t, ok := hasURLs(typeURL, names)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.spelled[t]
	if is == nil {
		is = &spelled{otherwise: make(map[string]string)}
		s.spelled[t] = is
	}
	if !s.kind.delta() { // a request has all names
		clear(is.otherwise)
	}
	for i, name := range names {
		names[i] = xdstp.Canonical(name)
		if delete(is.otherwise, names[i]); names[i] != name {
			is.otherwise[names[i]] = name
		}
		is.collections = is.collections || xdstp.IsCollection(names[i])
	}
}

// unspell gives names that a client no longer asks for their canonical spelling.
func (s *Stream) unspell(typeURL string, names []string) {
	t, ok := hasURLs(typeURL, names)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, name := range names {
		names[i] = xdstp.Canonical(name)
		if is := s.spelled[t]; is != nil {
			delete(is.otherwise, names[i])
		}
	}
}

// spellVersions gives the names of resources that a client says it has their canonical spelling.
func spellVersions(typeURL string, versions map[string]string) {
	for name, version := range versions {
		if is := xdstp.Canonical(name); is != name && xds.TypeOfURL(typeURL) != xds.VirtualHost {
			delete(versions, name)
			versions[is] = version
		}
	}
}

// collect takes over which collections the client asks for.
func (s *Stream) collect(sub *subscription) {
	is := s.spelled[sub.of]
	if is == nil || !is.collections {
		return
	}
	sub.collections = nil
	for name := range sub.names {
		if xdstp.IsCollection(name) {
			if sub.collections == nil {
				sub.collections = make(map[string]struct{})
			}
			sub.collections[name] = struct{}{}
		}
	}
}

// asAsked gives an incremental response the names by which the client asks.
func (s *Stream) asAsked(t *xds.Type, m *discoveryv3.DeltaDiscoveryResponse) {
	is := s.spelled[t]
	if is == nil || len(is.otherwise) == 0 {
		return
	}
	for i, r := range m.Resources { // which all streams share
		if name, ok := is.otherwise[r.GetName()]; ok {
			m.Resources[i] = &discoveryv3.Resource{Name: name, Aliases: r.GetAliases(), Version: r.GetVersion(), Resource: r.GetResource(), Ttl: r.GetTtl(), CacheControl: r.GetCacheControl()}
		}
		if name, ok := is.otherwise[r.GetResourceName().GetName()]; ok {
			m.Resources[i] = proto.CloneOf(r)
			m.Resources[i].ResourceName.Name = name
		}
	}
	for _, r := range m.RemovedResourceNames {
		if name, ok := is.otherwise[r.GetName()]; ok {
			r.Name = name
		}
	}
	m.RemovedResources = slices.Clone(m.RemovedResources)
	for i, r := range m.RemovedResources {
		if name, ok := is.otherwise[r]; ok {
			m.RemovedResources[i] = name
		}
	}
}

// members returns the resources of a collection.
func (s *state) members(t *xds.Type, collection string) []*xds.Resource {
	return membersOf(s.Of(t), collection)
}

// membersOf returns those of all resources of a type that belong to a collection.
func membersOf(all []*xds.Resource, collection string) (list []*xds.Resource) {
	if !xdstp.IsCollection(collection) {
		return nil
	}
	path, _, _ := strings.Cut(collection, "?")
	prefix := strings.TrimSuffix(path, "*")
	for i := sort.Search(len(all), func(i int) bool { return all[i].Name >= prefix }); i < len(all) && strings.HasPrefix(all[i].Name, prefix); i++ {
		if xdstp.Collection(all[i].Name) == collection {
			list = append(list, all[i])
		}
	}
	return list
}

// members returns the resources of a state that the client gets by a name of a collection.
func (s *subscription) members(now *state, name string) []*xds.Resource {
	if s.several != nil {
		return s.several.members(now.Of(s.of), name)
	}
	return now.members(s.of, name)
}

// collects reports whether the client asks for a collection that a resource belongs to.
func (s *subscription) collects(name string) bool {
	if len(s.collections) == 0 {
		return false
	}
	if s.several != nil {
		return s.several.gets(name)
	}
	_, ok := s.collections[xdstp.Collection(name)]
	return ok
}
