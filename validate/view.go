package validate

import (
	"slices"
	"sync"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"xdspub/diag"
	"xdspub/xds"
)

// View is a Snapshot as rules see it. What a rule looks up about other resources is taken
// down with the answer: a resource is judged again once one of the answers is another.
type View struct {
	index *index
	taker *judged // nil where nothing is taken down
}

// question is what a rule looks up.
type question struct {
	about questionAbout
	t     *xds.Type
	name  string
}

type questionAbout uint8

const (
	aboutResource questionAbout = iota // → *xds.Resource
	aboutPresence                      // is there one of that name? → bool
	aboutType                          // all of a type → []*xds.Resource
	aboutNearest                       // the name most like this one → string
	aboutManagers                      // connection managers that ask for a route configuration → []*hcmv3.HttpConnectionManager
	aboutHosts                         // virtual hosts of VHDS of a route configuration → []*xds.Resource
	aboutTracing                       // does anything trace by the bootstrap's tracer? → bool
)

// index is a Snapshot, and what is found in it once somebody asks.
type index struct {
	*xds.Snapshot
	words    map[*xds.Type]func() *diag.Words
	managers func() map[string][]*hcmv3.HttpConnectionManager
	hosts    func() map[string][]*xds.Resource
	traces   func() bool
}

func newIndex(s *xds.Snapshot) *index {
	x := &index{Snapshot: s, words: make(map[*xds.Type]func() *diag.Words)}
	x.hosts = sync.OnceValue(func() map[string][]*xds.Resource { return hostsByRoutes(s) })
	x.managers = sync.OnceValue(func() map[string][]*hcmv3.HttpConnectionManager { return findManagers(s) })
	x.traces = sync.OnceValue(func() bool { return tracesByBootstrap(s) })
	for _, t := range xds.Types {
		x.words[t] = sync.OnceValue(func() *diag.Words {
			var names []string
			for _, r := range named(s, t) {
				names = append(names, r.Name)
			}
			return diag.NewWords(names)
		})
	}
	return x
}

func (x *index) answer(q question) any {
	switch q.about {
	case aboutResource:
		return x.Snapshot.Lookup(q.t, q.name)
	case aboutPresence:
		return x.Snapshot.Lookup(q.t, q.name) != nil
	case aboutType:
		return x.Snapshot.Of(q.t)
	case aboutNearest:
		return x.words[q.t]().Nearest(q.name)
	case aboutManagers:
		return x.managers()[q.name]
	case aboutHosts:
		return x.hosts()[q.name]
	default:
		return x.traces()
	}
}

// stillSays tells whether the answer to a question is what it was.
func (x *index) stillSays(q question, answer any) bool {
	switch was := answer.(type) {
	case []*xds.Resource:
		return slices.Equal(was, x.answer(q).([]*xds.Resource))
	case []*hcmv3.HttpConnectionManager:
		return slices.Equal(was, x.answer(q).([]*hcmv3.HttpConnectionManager))
	default:
		return was == x.answer(q)
	}
}

func ask[T any](v View, q question) T {
	answer := v.index.answer(q)
	v.taker.note(q, answer)
	return answer.(T)
}

// Lookup returns the resource of that type and name, or nil.
func (v View) Lookup(t *xds.Type, name string) *xds.Resource {
	return ask[*xds.Resource](v, question{aboutResource, t, name})
}

// Has tells whether there is a resource of that type and name.
func (v View) Has(t *xds.Type, name string) bool {
	return ask[bool](v, question{aboutPresence, t, name})
}

// Of returns the resources of type t, sorted by name.
func (v View) Of(t *xds.Type) []*xds.Resource {
	return ask[[]*xds.Resource](v, question{about: aboutType, t: t})
}

// All returns every resource in the order of Types, then by name.
func (v View) All() []*xds.Resource {
	var all []*xds.Resource
	for _, t := range xds.Types {
		all = append(all, v.Of(t)...)
	}
	return all
}

// Nearest is the name of a resource of type t that is most like name, or "".
func (v View) Nearest(t *xds.Type, name string) string {
	return ask[string](v, question{aboutNearest, t, name})
}

// Managers are the connection managers that ask for a route configuration, those with
// scoped routes for "" and for the route configurations of all scopes.
func (v View) Managers(routes string) []*hcmv3.HttpConnectionManager {
	return ask[[]*hcmv3.HttpConnectionManager](v, question{about: aboutManagers, name: routes})
}

// Hosts are the virtual hosts of VHDS that belong to a route configuration, the first of
// those with one name.
func (v View) Hosts(routes string) []*xds.Resource {
	return ask[[]*xds.Resource](v, question{about: aboutHosts, name: routes})
}

// TracesByBootstrap tells whether a connection manager traces and names no provider of its
// own: then Envoy makes the tracer of the bootstrap for it.
func (v View) TracesByBootstrap() bool { return ask[bool](v, question{about: aboutTracing}) }

// Followed is Snapshot.Followed.
func (v View) Followed() bool { return v.index.Followed() }

// Serves is Snapshot.Serves. What it goes by is asked for, too: so it is taken down.
func (v View) Serves(s xds.Subscription) bool {
	if s.Target == xds.Secret {
		v.Has(s.Target, s.Name)
	}
	return v.index.Serves(s)
}

// Answer is Snapshot.Answer. What it goes by is asked for, too: so it is taken down.
func (v View) Answer(s xds.Subscription) *xds.Resource {
	v.Lookup(s.Target, s.Name)
	v.Serves(s)
	return v.index.Answer(s)
}
