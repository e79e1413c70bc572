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

// owner is the client that has started an Aggregate, as admit.Client.Peer names the client.
type owner struct {
	kind memory.Kind
	name string
}

func ownerOf(c admit.Client) owner {
	kind, name := c.Peer()
	return owner{kind, name}
}

// outnumbers: a client that owns n Aggregates can displace an Aggregate of a client that owns at least
// outnumbers*(n+1).
const outnumbers = 2

// displaceable returns an Aggregate that the server may end to start one for a client; nil for none. A client with a
// certificate, or of a Unix socket, displaces an Aggregate of any other client. Among clients of the same kind, a
// client displaces an Aggregate of an owner with outnumbers times as many. Of the owner with the most Aggregates,
// displaceable returns one without members, or else the newest. displaceable returns no Aggregate for which
// hasLastValid is true. An Aggregate without members still counts for its owner: a client can't displace more by
// closing its streams. The caller holds mu.
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
