package cache

import (
	"maps"
	"slices"
	"sync"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/xds"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// state is an immutable version of a view's resources.
type state struct {
	*xds.Snapshot
	// located and several are copied from the view.
	located, several bool
	number           int
	// changes are the names of resources that the last states added, changed or removed, by type; the newest
	// state is last.
	changes []map[*xds.Type][]string

	// mortal counts the resources with a TTL, by type.
	mortal map[*xds.Type]int

	whole   map[*xds.Type]whole
	aliases func() map[string]*xds.Resource
	// clusters returns the names of the clusters that resources refer to.
	clusters func() map[string]bool
	// constraints returns a hash of the constraints of all resources of a type; nil unless located.
	constraints map[*xds.Type]func() string
}

// mostChanges is the largest length of state.changes. changedSince compares all resources with those of an
// older state.
const mostChanges = 64

// next returns the state after s; s may be nil.
func (s *state) next(snapshot *xds.Snapshot, edits []xds.Edited, v *view) *state {
	n := &state{Snapshot: snapshot, located: v.located, several: v.several, mortal: make(map[*xds.Type]int), whole: make(map[*xds.Type]whole)}
	if s != nil {
		n.number, n.mortal = s.number+1, maps.Clone(s.mortal)
		changed := make(map[*xds.Type][]string)
		for _, e := range edits {
			changed[e.Key().Type] = append(changed[e.Key().Type], e.Key().Name)
			n.count(e.Was, -1)
			n.count(e.Is, 1)
		}
		n.changes = append(slices.Clone(s.changes[max(0, len(s.changes)+1-mostChanges):]), changed)
		maps.Copy(n.whole, s.whole)
	} else {
		for _, r := range snapshot.All() {
			n.count(r, 1)
		}
	}
	for _, t := range xds.Types {
		if s == nil || len(n.changes[len(n.changes)-1][t]) > 0 {
			n.whole[t] = wholeOf(snapshot.Of(t), v.located)
		}
	}
	n.aliases = sync.OnceValue(func() map[string]*xds.Resource { return aliases(snapshot) })
	n.clusters = sync.OnceValue(func() map[string]bool { return clustersOf(snapshot) })
	if v.located {
		n.constraints = constraintsOf(snapshot)
	}
	return n
}

// count adds by to the number of resources with a TTL if r has one.
func (s *state) count(r *xds.Resource, by int) {
	if r != nil && r.Meta.GetTtl() != nil {
		s.mortal[r.Type] += by
	}
}

// changedSince returns the names of the resources of a type that may differ from an earlier state.
func (s *state) changedSince(old *state, t *xds.Type) (names []string) {
	n := s.number - old.number
	if n <= len(s.changes) {
		for _, c := range s.changes[len(s.changes)-n:] {
			names = append(names, c[t]...)
		}
		return names
	}
	for _, e := range edits(old.Snapshot, s.Snapshot) {
		if e.Key().Type == t {
			names = append(names, e.Key().Name)
		}
	}
	return names
}

// find returns a resource by its name, or a virtual host also by its alias; nil for none.
func (s *state) find(t *xds.Type, name string) *xds.Resource {
	if r := s.Lookup(t, name); r != nil || t != xds.VirtualHost {
		return r
	}
	return s.aliases()[name]
}

// aliases returns virtual hosts by the names that Envoy requests on demand, <route configuration>/<domain>,
// and by the aliases in their wrappers.
func aliases(s *xds.Snapshot) map[string]*xds.Resource {
	byAlias := make(map[string]*xds.Resource)
	for _, r := range s.Of(xds.VirtualHost) {
		for _, alias := range aliasesOf(r) {
			byAlias[alias] = r
		}
	}
	return byAlias
}

func aliasesOf(r *xds.Resource) []string {
	all := slices.Clone(r.Meta.GetAliases())
	if host, ok := r.Message().(*routev3.VirtualHost); ok {
		for _, domain := range host.GetDomains() {
			all = append(all, xds.RoutesOfHost(r.Name)+"/"+domain)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(all)))
}

// version returns the version of a resource; "" if the state has no such resource.
func (s *state) version(t *xds.Type, name string) string {
	if r := s.find(t, name); r != nil {
		return s.encode(r).delta.GetVersion()
	}
	return ""
}

// encoded is the encoding of a resource, shared by all streams.
type encoded struct {
	*xds.Resource
	// sotw is the resource in a state-of-the-world response. wrapped is the resource in a wrapper with its
	// TTL, or sotw without a TTL.
	sotw, wrapped *anypb.Any
	// delta is the resource in an incremental response.
	delta *discoveryv3.Resource
}

// encodedKey is the key under which a resource caches its encoding (xds.Resource.Kept).
type encodedKey struct{ located bool }

// encode returns the encoding of a resource for the clients of the state.
func (s *state) encode(r *xds.Resource) *encoded { return encode(r, s.located) }

// encode returns the encoding of a resource; located adds the constraints. The resource caches its encoding,
// so the encoding becomes garbage with the resource.
func encode(r *xds.Resource, located bool) *encoded {
	return r.Kept(encodedKey{located}, func() any {
		e := encoding(r)
		if located {
			e.locate()
		}
		return e
	}).(*encoded)
}

func encoding(r *xds.Resource) *encoded {
	body, _ := r.Canonical() // no error: messages of the loader have a canonical form
	e := &encoded{Resource: r, sotw: &anypb.Any{TypeUrl: r.Type.URL(), Value: body}}
	e.delta = &discoveryv3.Resource{
		Name: r.Name, Aliases: aliasesOf(r), Version: r.Version(), Resource: e.sotw,
		Ttl: r.Meta.GetTtl(), CacheControl: r.Meta.GetCacheControl(),
	}
	if e.wrapped = e.sotw; e.delta.Ttl != nil {
		e.wrapped = wrapped(&discoveryv3.Resource{Name: r.Name, Resource: e.sotw, Ttl: e.delta.Ttl})
	}
	return e
}

// all returns the encodings of all resources of a type, sorted by name.
func (s *state) all(t *xds.Type) []*encoded { return s.whole[t].list() }

// whole holds all resources of a type: as a list, and as encoded response fields that all streams share. Each
// is computed on first use.
type whole struct {
	list        func() []*encoded
	sotw, delta func() []byte
}

// wholeOf returns the whole of resources. A whole must not refer to a state, because later states share the
// whole.
func wholeOf(resources []*xds.Resource, located bool) whole {
	list := sync.OnceValue(func() []*encoded {
		list := make([]*encoded, 0, len(resources))
		for _, r := range resources {
			list = append(list, encode(r, located))
		}
		return list
	})
	return whole{
		list:  list,
		sotw:  sync.OnceValue(func() []byte { return wire(list(), func(e *encoded) proto.Message { return e.sotw }) }),
		delta: sync.OnceValue(func() []byte { return wire(list(), func(e *encoded) proto.Message { return e.delta }) }),
	}
}

// resourcesField is the field number of resources in both kinds of responses.
const resourcesField = 2

// wire encodes resources as a field of a response.
func wire(list []*encoded, form func(*encoded) proto.Message) (b []byte) {
	for _, e := range list {
		m := form(e)
		b = protowire.AppendTag(b, resourcesField, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(proto.Size(m)))
		b, _ = proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, m) // no error: names are valid UTF-8
	}
	return b
}
