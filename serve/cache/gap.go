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

// A client has a gap of listeners if it asks for listeners, the snapshot has listeners for other clients, and
// no listener is for this client. A gap of clusters is the same for clusters. The likely cause is a typing
// error: in the dynamic parameters of the client, in the field of the node that they are read from, or in the
// constraints of a variant. An Envoy that is told of a gap of listeners closes all its ports. So the server
// removes nothing from a client with a gap, and reports the gap. The rule depends on what the client asks for
// and on the snapshot alone. A server that has just started does not know what has changed.

// gapTypes are the types that a client may have a gap of.
var gapTypes = []*xds.Type{xds.Listener, xds.Cluster}

// hasGap reports whether a client that asks for all resources of a type has a gap. The snapshot all has the
// variants for all clients. A client needs no cluster if its resources refer to no cluster of the snapshot.
func (s *state) hasGap(t *xds.Type, all *xds.Snapshot) bool {
	if all == nil || s.several || len(s.Of(t)) > 0 || len(all.Of(t)) == 0 {
		return false
	}
	return t == xds.Listener || slices.ContainsFunc(all.Of(t), func(r *xds.Resource) bool { return s.clusters()[r.Name] })
}

// clustersOf returns the names of clusters that resources refer to.
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

// gap reports whether the client has a gap of the type of a subscription. A client that sends resource locators
// has no gaps: xRFC TP2 has the server tell it that a variant does not exist.
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

// gapOf reports whether a client that asks for names has a gap.
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

// keeps reports whether nothing of a type may be removed from the client. A client with a gap of listeners
// keeps its listeners, and resources of all types, which the listeners may need. A client with a gap of
// clusters keeps resources of all types but listeners.
func (s *Stream) keeps(of *xds.Type, now *state) bool {
	return s.lacksAll(xds.Listener, now) || of != xds.Listener && s.lacksAll(xds.Cluster, now)
}

// lacksAll reports whether the client has a gap of a type. If this stream has no subscription of the type,
// another stream of the client may have one, or the client may be about to subscribe: lacksAll assumes a
// subscription to all resources.
func (s *Stream) lacksAll(t *xds.Type, now *state) bool {
	if sub := s.subscriptions[t]; sub != nil {
		return s.gap(sub, now)
	}
	return !s.located && now.hasGap(t, s.cache.all.Load()) && (s.only != nil || s.pushesAt(s.warmup.resumed.Add(grace)))
}

// keep takes the removals out of a response. It reports whether the response may be sent. By state of the world,
// a response with all listeners or clusters removes every other one. So it is not sent to a client that has
// come back and may have listeners or clusters that the server does not know of.
func (s *Stream) keep(sub *subscription, r *response) bool {
	s.removeLater(sub, r, s.removals(sub, r))
	return !s.holdsAll(sub) || !sub.strays && !slices.ContainsFunc(r.removed, sub.mayHave)
}

// notesGaps reports the gaps that have opened and closed.
func (s *Stream) notesGaps(now *state) {
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

// missing returns the first of the resources that a client with a gap asks for, sorted.
func (s *Stream) missing(sub *subscription) []string {
	asks := sub.asks
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

// gaps are the clients of a node that have a gap of a type.
type gaps struct {
	count int
	last  time.Time // when a gap was opened last
}

// gapOpens counts a gap. It reports whether the gap is the first one of the node, which is to be logged.
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

// logGap logs the gap of a client.
func (r *registry) logGap(c *clients.Client, t *xds.Type, now *state, missing []string) {
	r.log.Write(event.ClientWithoutVariant{
		Node: c.Node, Params: diag.Clip(params.Parameters(c.Parameters).String(), diag.MaxText), Type: t.API,
		Missing: diag.Clip(diag.Few(missing, mostBlamed), diag.MaxText), Selects: selects(now),
	})
}

// gapCloses counts the end of a gap. If the gap was mended, the next gap of the node is logged again. If the
// client has disconnected, it is not: the client may come back with the same gap.
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

// makeRoomForGap forgets the node without a gap whose last one is the oldest, if they are too many. It reports
// whether there is room.
func (r *registry) makeRoomForGap() bool {
	if len(r.gaps) < mostRejecting {
		return true
	}
	key, ok := oldest(r.gaps, func(is *gaps) (time.Time, bool) { return is.last, is.count <= 0 })
	delete(r.gaps, key)
	return ok
}

// Gaps returns how many clients get no listener, and how many no cluster, although the source tree has some
// for other clients, by API.
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

// hasGap reports whether a client by REST has a gap of a type.
func (p *Poll) hasGap(t *xds.Type) bool {
	if t == p.Type && !p.All && slices.Contains(gapTypes, t) {
		return gapOf(t, slices.Values(p.Names), p.state, p.cache.all.Load())
	}
	return slices.Contains(gapTypes, t) && p.state.hasGap(t, p.cache.all.Load())
}

// keeps reports whether a client by REST gets no response because of a gap. A response has all listeners or
// clusters, so it would remove every other one.
func (p *Poll) keeps() bool {
	return HoldsAll(p.Type) && p.Version != "" && (p.hasGap(xds.Listener) || p.Type != xds.Listener && p.hasGap(xds.Cluster))
}

// missing is missing of a Stream.
func (p *Poll) missing() []string {
	return missingOf(p.cache.all.Load(), p.Type, func(name string) bool {
		_, asks := slices.BinarySearch(p.Names, name) // they are sorted
		return p.All || asks
	})
}

// notes counts a gap that has opened or closed. It reports whether the gap is to be logged. A client without a
// node id, such as curl, is not counted.
func (is *polled) notes(gap bool, r *registry) (first bool) {
	if gap == is.gap || is.client.Node == "" {
		return false
	}
	if is.gap = gap; gap {
		return r.gapOpens(is.client.Node, is.of)
	}
	r.gapCloses(is.client.Node, is.of, true)
	return false
}

// selects says what a client gets.
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

// othersChange tells clients of a class whose resources have not changed what a change of the resources of other
// clients means for them: a gap can open or close, and an error can have another reason.
func (c *class) othersChange() {
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
