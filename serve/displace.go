package serve

import (
	"cmp"
	"maps"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"xdspub/event"
	"xdspub/serve/admit"
	"xdspub/serve/memory"
)

// owner is the peer that has started an Aggregate (admit.Client.Peer).
type owner struct {
	kind memory.Kind
	name string
}

func ownerOf(c admit.Client) owner {
	kind, name := c.Peer()
	return owner{kind, name}
}

// outnumbers is how many times as many Aggregates as another client a client must own before it loses an Aggregate to
// the other client.
const outnumbers = 2

// displaceable returns the Aggregate that loses its place to a client; nil for none. A client with a certificate, or of
// a Unix socket, displaces Aggregates of clients without a certificate. Otherwise, a client displaces an Aggregate of a
// client that owns outnumbers times as many. The owner with the most Aggregates loses one without clients, or else the
// newest. An Aggregate that hasLastValid stays. An Aggregate without clients counts for its owner, so a client that
// opens and closes streams displaces nothing. The caller holds mu.
func (a *aggregates) displaceable(by owner) (first *Aggregate) {
	owned := make(map[owner]int)
	for _, of := range a.byKey {
		owned[of.owner]++
	}
	before := func(x, y *Aggregate) bool {
		return cmp.Or(
			cmp.Compare(x.owner.kind, y.owner.kind), // memory.Anonymous first
			cmp.Compare(owned[y.owner], owned[x.owner]),
			cmp.Compare(min(1, len(x.members)), min(1, len(y.members))),
			cmp.Compare(y.order, x.order),
		) < 0
	}
	for _, of := range a.byKey {
		outranked := of.owner.kind == memory.Anonymous && by.kind == memory.Known
		outnumbered := of.owner.kind == by.kind && owned[of.owner] >= outnumbers*(owned[by]+1)
		if (outranked || outnumbered) && !of.hasLastValid() && (first == nil || before(of, first)) {
			first = of
		}
	}
	return first
}

// endDisplaced ends an Aggregate that has lost its place, and the streams of its clients.
func (a *aggregates) endDisplaced(of *Aggregate) {
	a.mu.Lock()
	members := maps.Clone(of.members)
	a.mu.Unlock()
	of.idle.Stop()
	of.Log().Write(event.AggregateDisplaced{Node: of.String(), Clients: len(members)})
	of.end()
	for m := range members {
		m.end(status.Error(codes.ResourceExhausted, "the aggregate of this client has lost its place to a client that owns fewer aggregates, or "+
			"has a certificate: try again later, aggregate by fewer fields (--aggregate-by), or see --limit aggregates"))
	}
}
