package cache

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/xds"
	"xdspub/xds/clients"
	"xdspub/xds/params"
)

// A client has a gap of listeners if it subscribes to listeners, and the snapshot has listeners only for
// other clients. A gap of clusters is the same for clusters that the client needs. The likely cause is a
// typing error: in the client's dynamic parameters, in the field of the node that they derive from, or in the
// constraints of a variant. If the server removed all listeners, an Envoy would close all its ports. So the
// server keeps the resources of a client with a gap (mustKeep), and reports the gap. The rule depends only on
// the subscriptions and the snapshot, because a server that has just started doesn't know the snapshot
// before.

// gapTypes are the types with gaps.
var gapTypes = []*xds.Type{xds.Listener, xds.Cluster}

// hasGap reports whether a client that subscribes to all resources of a type has a gap. all has the variants
// for all clients; nil before the first Publish. A client whose resources refer to no cluster of the snapshot
// needs no cluster.
func (s *state) hasGap(t *xds.Type, all *xds.Snapshot) bool {
	if all == nil || s.several || len(s.Of(t)) > 0 || len(all.Of(t)) == 0 {
		return false
	}
	return t == xds.Listener || slices.ContainsFunc(all.Of(t), func(r *xds.Resource) bool { return s.clusters()[r.Name] })
}

// clustersOf returns the names of the clusters that resources refer to.
func clustersOf(s *xds.Snapshot) map[string]bool {
	names := make(map[string]bool)
	for _, r := range s.All() {
		xds.Walk(r.Message(), func(n *xds.Node) {
			for _, use := range n.Uses() {
				if use.Kind == xds.ClusterName {
					names[use.Name] = true
				}
			}
		})
	}
	return names
}

// gap reports whether the client has a gap of the subscription's type. A client with resource locators has no
// gaps, because xRFC TP2 requires the server to report missing variants.
func (s *Stream) gap(sub *subscription, now *state) bool {
	if s.located || !slices.Contains(gapTypes, sub.of) {
		return false
	}
	all := s.cache.all.Load()
	if sub.wildcard {
		return now.hasGap(sub.of, all)
	}
	return gapOf(sub.of, maps.Keys(sub.names), now, all)
}

// gapOf reports whether a client that subscribes to names has a gap: the client gets no resource of these
// names, and other clients get some.
func gapOf(t *xds.Type, names iter.Seq[string], now *state, all *xds.Snapshot) bool {
	exists := false
	for name := range names {
		if now.find(t, name) != nil || len(membersOf(now.Of(t), name)) > 0 {
			return false
		}
		exists = exists || all != nil && (all.Lookup(t, name) != nil || len(membersOf(all.Of(t), name)) > 0)
	}
	return exists
}

// mustKeep reports whether the client must keep all its resources of a type. A client with a gap of listeners
// keeps its listeners, and all other resources, which the listeners may need. A client with a gap of clusters
// keeps all resources except listeners.
func (s *Stream) mustKeep(of *xds.Type, now *state) bool {
	return s.lacksAll(xds.Listener, now) || of != xds.Listener && s.lacksAll(xds.Cluster, now)
}

// lacksAll reports whether the client has a gap of a type. On a singleton stream, and for grace after the
// client has come back, lacksAll assumes a missing subscription to be one to all resources: another stream
// may have the subscription, or the client may be about to subscribe.
func (s *Stream) lacksAll(t *xds.Type, now *state) bool {
	if sub := s.subscriptions[t]; sub != nil {
		return s.gap(sub, now)
	}
	return !s.located && now.hasGap(t, s.cache.all.Load()) && (s.only != nil || s.pushesAt(s.warmup.resumed.Add(grace)))
}

// keepRemoved takes the removals out of a response, and reports whether the response may be sent. A
// state-of-the-world response removes the listeners or clusters that it lacks. So keepRemoved returns false
// for a reconnecting client that may have listeners or clusters that the server doesn't know.
func (s *Stream) keepRemoved(sub *subscription, r *response) bool {
	s.removeLater(sub, r, s.removals(sub, r))
	return !s.holdsAll(sub) || !sub.strays && !slices.ContainsFunc(r.removed, sub.mayHave)
}

// reportGaps reports gaps that have opened or closed.
func (s *Stream) reportGaps(now *state) {
	for _, t := range gapTypes {
		sub := s.subscriptions[t]
		if sub == nil {
			continue
		}
		gap := s.gap(sub, now)
		if gap == sub.gap {
			continue
		}
		sub.gap = gap
		if !gap {
			s.view.clients.gapCloses(s.client.Node, t, true)
		} else if s.view.clients.gapOpens(s.client.Node, t) {
			s.view.clients.logGap(&s.client.Client, t, now, s.missing(sub))
		}
	}
}

// missing returns the first names of the resources that a client with a gap subscribes to, sorted.
func (s *Stream) missing(sub *subscription) []string {
	asks := sub.subscribes
	if sub.wildcard {
		asks = func(string) bool { return true }
	}
	return missingOf(s.cache.all.Load(), sub.of, asks)
}

func missingOf(all *xds.Snapshot, t *xds.Type, asks func(string) bool) (names []string) {
	for _, r := range all.Of(t) {
		if asks(r.Name) && !slices.Contains(names, r.Name) {
			if names = append(names, r.Name); len(names) == clients.MostNames {
				break
			}
		}
	}
	return names
}

// gaps counts the connected clients of a node with a gap of a type.
type gaps struct {
	count int
	last  time.Time // time of the last new gap
}

// gapOpens counts a gap, and reports whether to log the gap: it is the first known gap of the node and type.
func (r *registry) gapOpens(node string, t *xds.Type) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := rejecting{node, t.API}
	r.open[t.API]++
	known := r.gaps[key]
	if first = known == nil; first && r.makeRoomForGap() {
		known = &gaps{}
		r.gaps[key] = known
	}
	if known != nil {
		known.count++
		known.last = time.Now()
	}
	return first
}

// logGap logs a client's gap.
func (r *registry) logGap(c *clients.Client, t *xds.Type, now *state, missing []string) {
	r.log.Write(event.ClientWithoutVariant{
		Node: c.Node, Params: diag.Clip(params.Parameters(c.Parameters).String(), diag.MaxText), Type: t.API,
		Missing: diag.Clip(diag.Few(missing, mostBlamed), diag.MaxText), Selects: selects(now),
	})
}

// gapCloses counts the end of a gap. If the node's last gap was mended, the next gap is logged again. If the
// client has disconnected, the next gap is not logged, because the client may reconnect with the same gap.
func (r *registry) gapCloses(node string, t *xds.Type, mended bool) {
	key := rejecting{node, t.API}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[t.API]--
	known := r.gaps[key]
	if known == nil {
		return
	}
	known.count--
	if mended && known.count <= 0 {
		delete(r.gaps, key)
	}
}

// makeRoomForGap forgets the node without a gap whose last gap is the oldest, if the registry is full.
// makeRoomForGap reports whether there is room.
func (r *registry) makeRoomForGap() bool {
	if len(r.gaps) < mostRejecting {
		return true
	}
	key, ok := oldest(r.gaps, func(is *gaps) (time.Time, bool) { return is.last, is.count <= 0 })
	delete(r.gaps, key)
	return ok
}

// Gaps returns the number of clients with a gap for each API of gapTypes.
func (c *Cache) Gaps() map[string]int {
	r := c.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	open := make(map[string]int)
	for _, t := range gapTypes {
		open[t.API] = r.open[t.API]
	}
	return open
}

// hasGap reports whether a REST client has a gap of a type.
func (p *Poll) hasGap(t *xds.Type) bool {
	if t == p.Type && !p.All && slices.Contains(gapTypes, t) {
		return gapOf(t, slices.Values(p.Names), p.state, p.cache.all.Load())
	}
	return slices.Contains(gapTypes, t) && p.state.hasGap(t, p.cache.all.Load())
}

// mustKeep reports whether a gap prevents a response to a REST client. A response with all listeners or clusters
// would remove all others.
func (p *Poll) mustKeep() bool {
	return HoldsAll(p.Type) && p.Version != "" && (p.hasGap(xds.Listener) || p.Type != xds.Listener && p.hasGap(xds.Cluster))
}

// missing is Stream.missing for a REST client.
func (p *Poll) missing() []string {
	return missingOf(p.cache.all.Load(), p.Type, func(name string) bool {
		_, asks := slices.BinarySearch(p.Names, name) // they are sorted
		return p.All || asks
	})
}

// countGap counts a gap that has opened or closed, and reports whether to log the gap. countGap ignores a
// client without a node id, such as curl.
func (is *polled) countGap(gap bool, r *registry) (first bool) {
	if gap == is.gap || is.client.Node == "" {
		return false
	}
	if is.gap = gap; gap {
		return r.gapOpens(is.client.Node, is.of)
	}
	r.gapCloses(is.client.Node, is.of, true)
	return false
}

// selects describes the resources of a client for a log line.
func selects(now *state) string {
	var list []string
	for _, t := range xds.InTurn {
		if n := len(now.Of(t)); n > 0 {
			list = append(list, fmt.Sprintf("%s %d", t.API, n))
		}
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

// pushUnchanged pushes to clients whose own resources have not changed, if other clients' resources matter to
// them: a change of these resources can open or close a gap, and change the reason of an error.
func (c *class) pushUnchanged() {
	if c.several || c.selection == nil {
		return
	}
	gaps := len(c.selection.Snapshot.Of(xds.Listener)) == 0 || len(c.selection.Snapshot.Of(xds.Cluster)) == 0
	for _, v := range c.views {
		for _, s := range v.all() {
			if gaps || s.othersMatter() {
				s.published()
			}
		}
	}
}
