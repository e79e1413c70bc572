package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/xds"
)

// Kind is a kind of effect.
type Kind string

// The kinds of effects, in the order of a report: first what ends connections, then what moves traffic.
const (
	// ListenerDrains: Envoy removes or replaces a listener, and its connections drain.
	ListenerDrains Kind = "listener-drains"
	// FilterChainDrains: the connections of a filter chain drain. The listener and the other filter chains stay.
	FilterChainDrains Kind = "filter-chain-drains"
	// ClusterReplaced: Envoy replaces a cluster, which loses its connection pools.
	ClusterReplaced Kind = "cluster-replaced"
	// ClusterRemoved: a cluster and its connection pools go, when nothing that drains can use the cluster.
	ClusterRemoved Kind = "cluster-removed"
	// RouteMoves: requests go to another target.
	RouteMoves Kind = "route-moves"
	// EndpointRemoved, EndpointAdded and EndpointWeight: an endpoint goes, comes, or gets another share of the weight.
	EndpointRemoved Kind = "endpoint-removed"
	EndpointAdded   Kind = "endpoint-added"
	EndpointWeight  Kind = "endpoint-weight"
	// SecretRotates: new connections use the new secret.
	SecretRotates Kind = "secret-rotates"
	// RuntimeChanges: a runtime key has another value.
	RuntimeChanges Kind = "runtime-changes"
	// ListenerAdded and ClusterAdded: Envoy makes a new listener or cluster.
	ListenerAdded Kind = "listener-added"
	ClusterAdded  Kind = "cluster-added"
	// ListenerUpdated: Envoy updates a listener in place, without draining its connections.
	ListenerUpdated Kind = "listener-updated"
	// Applied: Envoy uses the new version of a resource, without closing a connection.
	Applied Kind = "applied"
)

// Kinds lists all kinds of effects in the order of a report.
var Kinds = []Kind{
	ListenerDrains, FilterChainDrains, ClusterReplaced, ClusterRemoved, RouteMoves, EndpointRemoved, EndpointAdded,
	EndpointWeight, SecretRotates, RuntimeChanges, ListenerAdded, ClusterAdded, ListenerUpdated, Applied,
}

// Disturbs reports whether an effect of the kind ends connections or moves traffic.
func (k Kind) Disturbs() bool {
	return slices.Index(Kinds, k) < slices.Index(Kinds, ListenerAdded)
}

// Effect is an effect of a change on an Envoy that runs the first Snapshot.
type Effect struct {
	Kind Kind `json:"kind"`
	// Type and Name are those of the resource, as in Resource.
	Type string `json:"type"`
	Name string `json:"name"`
	// Part is the part of the resource: a filter chain, a virtual host, an endpoint or a runtime key.
	Part string `json:"part,omitempty"`
	// Sockets are the addresses that a listener listens on.
	Sockets []string `json:"sockets,omitempty"`
	// Request is a request that goes to another target, such as GET http://example.com/api.
	Request string `json:"request,omitempty"`
	// Was and Is are the target, the share of the weight, the secret or the value before and after.
	Was string `json:"was,omitempty"`
	Is  string `json:"is,omitempty"`
	// Text is the effect in words.
	Text string `json:"text"`

	key xds.Key
}

// mostEffects bounds the effects of a kind. The last one counts the others.
const mostEffects = 10_000

// effectList collects effects.
type effectList struct {
	of   map[Kind][]Effect
	left map[Kind]int
}

// add adds an effect on a resource. format and args are its text behind the resource. A text that begins with a colon
// is a sentence of its own.
func (l *effectList) add(k xds.Key, e Effect, format string, args ...any) {
	e.key, e.Type, e.Name = k, k.Type.API, k.Name
	e.Part, e.Was, e.Is, e.Request = clip(e.Part), clip(e.Was), clip(e.Is), clip(e.Request)
	for i, at := range e.Sockets {
		e.Sockets[i] = clip(at)
	}
	if !strings.HasPrefix(format, ":") {
		format = " " + format
	}
	e.Text = clip(k.String() + fmt.Sprintf(format, args...))
	if len(l.of[e.Kind]) >= mostEffects {
		l.left[e.Kind]++
		return
	}
	l.of[e.Kind] = append(l.of[e.Kind], e)
}

// effects returns the effects of edits.
func effects(s *sides, edits []xds.Edited) []Effect {
	l := &effectList{of: make(map[Kind][]Effect), left: make(map[Kind]int)}
	routes := newRouting(s, l)
	for _, e := range edits {
		switch e.Key().Type {
		case xds.Listener:
			l.listener(e)
			routes.listener(e)
		case xds.Cluster:
			l.cluster(e)
		case xds.RouteConfiguration, xds.VirtualHost:
			routes.edited(e)
		case xds.Endpoints:
			l.endpoints(s, e)
		case xds.LocalityEndpoints:
			l.localityEndpoint(e)
		case xds.Secret:
			l.secret(e)
		case xds.Runtime:
			l.runtime(e)
		default: // scopes and extensions
			l.applied(e)
		}
	}
	return l.list()
}

// applied adds the effect of a resource that Envoy exchanges without closing a connection.
func (l *effectList) applied(e xds.Edited) {
	switch {
	case e.Was == nil:
		l.add(e.Key(), Effect{Kind: Applied}, "is new; no connection closes")
	case e.Is == nil:
		l.add(e.Key(), Effect{Kind: Applied}, "is removed; no connection closes")
	default:
		l.add(e.Key(), Effect{Kind: Applied}, "changes for new requests; no connection closes")
	}
}

// list returns all effects.
func (l *effectList) list() []Effect {
	list := []Effect{}
	for _, kind := range Kinds {
		of := l.of[kind]
		slices.SortStableFunc(of, func(a, b Effect) int {
			return cmp.Or(slices.Index(xds.Types, a.key.Type)-slices.Index(xds.Types, b.key.Type), cmp.Compare(a.Name, b.Name))
		})
		list = append(list, of...)
		if n := l.left[kind]; n > 0 {
			list = append(list, Effect{Kind: kind, Text: "… and " + diag.Count(n, "more effect") + " of this kind"})
		}
	}
	return list
}

// cluster adds the effect of a changed cluster. Envoy compares the hash of the whole cluster: each change of a field
// replaces the cluster.
func (l *effectList) cluster(e xds.Edited) {
	switch {
	case e.Was == nil:
		l.add(e.Key(), Effect{Kind: ClusterAdded}, "is new")
	case e.Is == nil:
		l.add(e.Key(), Effect{Kind: ClusterRemoved}, "goes when no listener that drains can use it; its connections close then")
	default:
		l.add(e.Key(), Effect{Kind: ClusterReplaced}, "is replaced, and loses its connection pools")
		l.inlined(e)
	}
}
