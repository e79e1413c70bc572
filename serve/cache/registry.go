package cache

import (
	"cmp"
	"container/list"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/peer"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/xds"
	"xdspub/xds/clients"
)

const (
	// mostGone is the largest number of disconnected clients in registry.gone, goneFor their longest time
	// there.
	mostGone = 1000
	goneFor  = time.Hour
	// mostRejecting is the largest number of entries in registry.rejecting, and in registry.gaps. registry
	// forgets the oldest entries first.
	mostRejecting = 1000
)

// registry tracks the clients of a Cache. Its methods may be called with the lock of a Stream held; registry
// never locks a Stream while holding its own lock.
type registry struct {
	log    *event.Log
	places places

	mu        sync.Mutex
	connected map[identity]*connected
	// gone is sorted by the time of disconnection. Client.Gone has a monotonic clock reading, which survives
	// changes of the clock.
	gone      []clients.Client
	goneBytes int // of gone
	rejecting map[rejecting]*rejections
	gaps      map[rejecting]*gaps
	open      map[string]int // gaps, by API

	polls *polls
}

func newRegistry(log *event.Log) *registry {
	r := &registry{
		log: log, connected: make(map[identity]*connected), rejecting: make(map[rejecting]*rejections),
		gaps: make(map[rejecting]*gaps), open: make(map[string]int),
	}
	r.polls = &polls{registry: r, clients: make(map[string]*list.Element)}
	return r
}

// identity identifies a client over all its streams.
type identity struct {
	kind Kind
	node string
	// connection is the connection of a client with singleton streams. For any other client, connection is
	// the stream itself, because several clients of one node may share a connection.
	connection any
}

// connected is a connected client.
type connected struct {
	clients.Client // without Subscriptions
	identity       identity
	streams        map[*Stream]struct{}
	ended          []clients.Subscription // the last ended stream of each type
}

// rejecting is a key for NACKs and gaps: a node and a type.
type rejecting struct{ node, api string }

// rejections counts the NACKs of a node for a type.
type rejections struct {
	count   uint64
	version string // version of the last NACK; "" after the next ACK
	retried bool   // the last NACK was retried
	last    time.Time
}

// join adds a stream to the client that its first request describes. node may be nil.
func (r *registry) join(s *Stream, node *corev3.Node) *connected {
	id := identity{s.kind, diag.Clip(node.GetId(), diag.MaxWord), s}
	if p := s.peer; s.only != nil && p != nil && p.Addr != nil {
		id.connection = connectionOf(p.Addr)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.connected[id]
	if c == nil {
		c = &connected{identity: id, streams: make(map[*Stream]struct{}, 1), Client: clients.Client{
			Node: id.node, Cluster: diag.Clip(node.GetCluster(), diag.MaxWord), UserAgent: userAgent(node),
			Address: addressOf(s.peer), Kind: string(id.kind), Parameters: shownParameters(s.params), Since: time.Now().UTC().Round(0),
		}}
		r.connected[id] = c
		r.removeGone(c.Client)
	}
	c.streams[s] = struct{}{}
	return c
}

// removeGone removes a client that has reconnected from gone. The caller holds the lock.
func (r *registry) removeGone(c clients.Client) {
	i := slices.IndexFunc(r.gone, func(g clients.Client) bool { return g.Node == c.Node && g.Kind == c.Kind })
	if i >= 0 {
		r.goneBytes -= bytesOf(r.gone[i])
		r.gone = slices.Delete(r.gone, i, i+1)
	}
}

// addGone adds a client to gone. had are the client's subscriptions. The caller holds the lock.
func (r *registry) addGone(c clients.Client, at time.Time, had []clients.Subscription) {
	c.Gone, c.Subscriptions = at, had
	r.gone = append(r.gone, c)
	r.goneBytes += bytesOf(c)
	r.forgetGone(time.Now())
}

// leave removes a stream from a client. had are the stream's subscriptions.
func (r *registry) leave(s *Stream, c *connected, had []clients.Subscription) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(c.streams, s)
	c.ended = slices.DeleteFunc(c.ended, func(old clients.Subscription) bool {
		return slices.ContainsFunc(had, func(is clients.Subscription) bool { return is.API == old.API })
	})
	c.ended = merged(c.ended, had)
	if len(c.streams) > 0 {
		return
	}
	delete(r.connected, c.identity)
	r.addGone(c.Client, time.Now(), c.ended)
}

// forgetGone removes clients from gone that are too old or too many. The caller holds the lock.
func (r *registry) forgetGone(now time.Time) {
	old := 0
	for old < len(r.gone) && (len(r.gone)-old > mostGone || r.goneBytes > mostGoneBytes || now.Sub(r.gone[old].Gone) > goneFor) {
		r.goneBytes -= bytesOf(r.gone[old])
		old++
	}
	r.gone = slices.Delete(r.gone, 0, old)
}

// recordRejection counts a NACK, and logs e if the NACK is new. Hundreds of replicas may share a node id. So
// a NACK is not new if the last NACK of the node and type was of the same version, and recordAck has recorded
// no ACK since. The first retried NACK is new, and so is the first NACK without a retry after retried ones.
func (r *registry) recordRejection(key rejecting, version string, e event.Event) {
	_, retried := e.(event.ResponseRetried)
	r.mu.Lock()
	known := r.rejecting[key]
	if known == nil {
		known = &rejections{}
		r.makeRoom()
		r.rejecting[key] = known
	}
	first := known.count == 0 || known.version != version || known.retried != retried
	known.count++
	known.version, known.retried, known.last = version, retried, time.Now()
	r.mu.Unlock()
	if first {
		r.log.Write(e)
	}
}

// recordAck records the first ACK of a client after a refusal, which may be nil. The next NACK of the refused
// version by a client of the node is logged again.
func (r *registry) recordAck(node string, refused *refusal) {
	if refused == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.rejecting[rejecting{node, refused.of.API}]; known != nil && known.version == refused.version {
		known.version = ""
	}
}

// makeRoom forgets the entry with the oldest NACK if rejecting is full. The caller holds the lock.
func (r *registry) makeRoom() {
	if len(r.rejecting) < mostRejecting {
		return
	}
	key, _ := oldest(r.rejecting, func(is *rejections) (time.Time, bool) { return is.last, true })
	delete(r.rejecting, key)
}

// oldest returns the key of the entry with the earliest time. last returns the time of an entry, and whether
// the entry counts. ok is false if no entry counts.
func oldest[E any](all map[rejecting]E, last func(E) (at time.Time, counts bool)) (key rejecting, ok bool) {
	var first time.Time
	for k, e := range all {
		if at, counts := last(e); counts && (!ok || at.Before(first)) {
			key, first, ok = k, at, true
		}
	}
	return key, ok
}

// Rejections returns the number of NACKs by node and type. With more than 1,000 entries, Rejections forgets
// the entries with the oldest NACKs.
func (c *Cache) Rejections() []clients.Rejections {
	r := c.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]clients.Rejections, 0, len(r.rejecting))
	for key, is := range r.rejecting {
		list = append(list, clients.Rejections{Node: key.node, API: key.api, Count: is.count})
	}
	slices.SortFunc(list, func(a, b clients.Rejections) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.API, b.API))
	})
	return list
}

// Clients returns the connected clients, followed by up to 1,000 clients that have disconnected within an
// hour. Both parts are sorted by node. If the details of the first clients exceed 16 MiB, the other connected
// clients have no details. REST clients without a node id are left out.
func (c *Cache) Clients() []clients.Client {
	r := c.registry
	polling := r.polls.list()
	r.mu.Lock()
	r.forgetGone(time.Now())
	there := slices.Collect(maps.Values(r.connected))
	slices.SortFunc(there, func(a, b *connected) int { return compareClients(a.Client, b.Client) })
	streams := make([][]*Stream, len(there))
	for i, is := range there {
		streams[i] = slices.Collect(maps.Keys(is.streams))
	}
	gone := slices.Clone(r.gone)
	for i := range gone {
		gone[i].Gone = gone[i].Gone.UTC().Round(0)
		gone[i].Subscriptions = slices.Clone(gone[i].Subscriptions) // countRejections writes into Subscriptions
	}
	r.mu.Unlock()
	list, left := make([]clients.Client, 0, len(there)+len(polling)+len(gone)), mostDetails
	add := func(c clients.Client) {
		if left -= bytesOf(c); left < 0 {
			c = withoutDetails(c)
		}
		list = append(list, c)
	}
	for i, is := range there {
		is := is.Client
		is.Subscriptions = []clients.Subscription{}
		for _, s := range streams[i] {
			is.Subscriptions = merged(is.Subscriptions, s.status())
		}
		add(is)
	}
	for _, c := range polling {
		add(c)
	}
	slices.SortFunc(list, compareClients)
	slices.SortFunc(gone, compareClients)
	list = append(list, gone...)
	c.countRejections(list)
	return list
}

// countRejections sets the counts of NACKs in a list of clients.
func (c *Cache) countRejections(list []clients.Client) {
	counts := make(map[rejecting]uint64)
	for _, r := range c.Rejections() {
		counts[rejecting{r.Node, r.API}] = r.Count
	}
	for _, of := range list {
		for i := range of.Subscriptions {
			sub := &of.Subscriptions[i]
			sub.Rejections = counts[rejecting{of.Node, sub.API}]
		}
	}
}

func compareClients(a, b clients.Client) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Kind, b.Kind), a.Since.Compare(b.Since), cmp.Compare(a.Address, b.Address))
}

// merged merges subscriptions of the same client. Subscriptions of one type, for example to the endpoints of
// each cluster, become one subscription with the worst state.
func merged(list, more []clients.Subscription) []clients.Subscription {
	for _, m := range more {
		i := slices.IndexFunc(list, func(s clients.Subscription) bool { return s.API == m.API })
		if i < 0 {
			list = append(list, m)
			continue
		}
		if badness(m) < badness(list[i]) {
			list[i], m = m, list[i]
		}
		is := &list[i]
		is.All = is.All || m.All
		is.Asked += m.Asked
		is.Names = slices.Concat(is.Names, m.Names)
		slices.Sort(is.Names)
		is.Names = firstNames(is.Names)
		is.Missing = slices.Concat(is.Missing, m.Missing)
		slices.Sort(is.Missing)
		is.Missing = slices.Compact(is.Missing)
		is.Missing = is.Missing[:min(len(is.Missing), clients.MostNames)]
	}
	slices.SortFunc(list, func(a, b clients.Subscription) int { return cmp.Compare(orderOf(a.API), orderOf(b.API)) })
	return list
}

// badness returns the rank of a subscription; 0 is the worst.
func badness(s clients.Subscription) int {
	return slices.Index([]clients.Sync{clients.Rejected, clients.Retrying, clients.NoVariant, clients.Stale, clients.Synced, clients.NotSent}, s.Sync)
}

// orderOf returns the position of a type in the make-before-break order. An unknown type comes last.
func orderOf(api string) int {
	if t := xds.TypeOfAPI(api); t != nil {
		return t.Turn
	}
	return len(xds.Types) + 1
}

// connectionOf returns a comparable identity of a connection. gRPC creates one address value per connection.
func connectionOf(a net.Addr) any {
	switch a.(type) {
	case *net.TCPAddr, *net.UnixAddr:
		return a
	}
	return a.Network() + " " + a.String()
}

// addressOf returns the address of a client, or the Unix socket that the client uses; "" if unknown.
func addressOf(p *peer.Peer) string {
	switch {
	case p == nil || p.Addr == nil:
		return ""
	case p.Addr.Network() == "unix" && p.LocalAddr != nil:
		return "unix:" + p.LocalAddr.String()
	}
	return p.Addr.String()
}

// userAgent returns the name and version of a node's user agent, clipped to diag.MaxWord bytes.
func userAgent(n *corev3.Node) string {
	version := n.GetUserAgentVersion()
	if v := n.GetUserAgentBuildVersion().GetVersion(); v != nil {
		version = fmt.Sprintf("%d.%d.%d", v.GetMajorNumber(), v.GetMinorNumber(), v.GetPatch())
	}
	return diag.Clip(strings.TrimSpace(n.GetUserAgentName()+" "+version), diag.MaxWord)
}
