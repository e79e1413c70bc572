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

// The Cache uses the canonical spelling of xdstp names, and passes it to the library. Errors and incremental
// responses use the client's spelling. Resources in a state of the world use their own names.

// spelled holds the client's spelling of the xdstp names in a subscription.
type spelled struct {
	// aliases maps a canonical name to the client's spelling, if the spelling is another.
	aliases map[string]string
	// collections means that the client subscribes, or has subscribed, to a collection.
	collections bool
}

// hasURLs returns the type of a request, and whether the request has xdstp names; the type is nil if not.
// Names of virtual hosts are never xdstp names: they consist of two names.
func hasURLs(typeURL string, names []string) (*xds.Type, bool) {
	if !slices.ContainsFunc(names, xdstp.Is) {
		return nil, false
	}
	t := xds.TypeOfURL(typeURL)
	return t, t != nil && t != xds.VirtualHost
}

// spell gives the names of a request their canonical spelling, and records the client's spelling.
func (s *Stream) spell(typeURL string, names []string) {
	t, ok := hasURLs(typeURL, names)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.spelled[t]
	if is == nil {
		is = &spelled{aliases: make(map[string]string)}
		s.spelled[t] = is
	}
	if !s.kind.delta() { // a request lists all names
		clear(is.aliases)
	}
	for i, name := range names {
		names[i] = xdstp.Canonical(name)
		if delete(is.aliases, names[i]); names[i] != name {
			is.aliases[names[i]] = name
		}
		is.collections = is.collections || xdstp.IsCollection(names[i])
	}
}

// unspell gives unsubscribed names their canonical spelling.
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
			delete(is.aliases, names[i])
		}
	}
}

// spellVersions gives the names in initial_resource_versions their canonical spelling.
func spellVersions(typeURL string, versions map[string]string) {
	for name, version := range versions {
		if is := xds.TypeOfURL(typeURL).Canonical(name); is != name {
			delete(versions, name)
			versions[is] = version
		}
	}
}

// collect records the collections that a client with one parameter set subscribes to.
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

// asAsked gives an incremental response the client's spelling of names.
func (s *Stream) asAsked(t *xds.Type, m *discoveryv3.DeltaDiscoveryResponse) {
	is := s.spelled[t]
	if is == nil || len(is.aliases) == 0 {
		return
	}
	for i, r := range m.Resources { // copy, because streams share r
		if name, ok := is.aliases[r.GetName()]; ok {
			m.Resources[i] = &discoveryv3.Resource{
				Name: name, Aliases: r.GetAliases(), Version: r.GetVersion(), Resource: r.GetResource(),
				Ttl: r.GetTtl(), CacheControl: r.GetCacheControl(),
			}
		}
		if name, ok := is.aliases[r.GetResourceName().GetName()]; ok {
			m.Resources[i] = proto.CloneOf(r)
			m.Resources[i].ResourceName.Name = name
		}
	}
	for _, r := range m.RemovedResourceNames {
		if name, ok := is.aliases[r.GetName()]; ok {
			r.Name = name
		}
	}
	m.RemovedResources = slices.Clone(m.RemovedResources)
	for i, r := range m.RemovedResources {
		if name, ok := is.aliases[r]; ok {
			m.RemovedResources[i] = name
		}
	}
}

// members returns the resources of a collection.
func (s *state) members(t *xds.Type, collection string) []*xds.Resource {
	return membersOf(s.Of(t), collection)
}

// membersOf returns the resources of a collection from all resources of a type, sorted by name.
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

// members returns the resources that the client gets by the name of a collection.
func (s *subscription) members(now *state, name string) []*xds.Resource {
	if s.several != nil {
		return s.several.members(now.Of(s.of), name)
	}
	return now.members(s.of, name)
}

// collects reports whether the client subscribes to a collection of a resource.
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
