// Package memory bounds the memory that clients can make a server hold.
//
//	budget := memory.New(256<<20, memory.Options{})
//	connection := budget.Connect(memory.Anonymous, "192.0.2.1", conn.Evict)
//	stream := connection.Open()
//	err = stream.Take(100_000)
//	stream.Close()
//	connection.Close()
//
// Accounts form a tree: the Budget, the two kinds of clients, peers, connections, streams. The connections of
// a client have the same peer. Bytes of an account count in every account above it, and each account has a
// limit.
//
// When no bytes are left for a peer, the largest peer of the same kind loses connections, if it holds many
// times as much. So a few peers can't take the memory of all others.
package memory

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Kind is a kind of client. Each kind has a share of the Budget.
type Kind int

const (
	// Anonymous clients have presented no certificate, or have not presented it yet.
	Anonymous Kind = iota
	// Known clients have presented a certificate, or have connected through a Unix socket.
	Known
)

// Local returns the peer of all connections through Unix sockets.
func Local() (kind Kind, name string) { return Known, "unix" }

// Stranger returns the peer of a client without a certificate. The address is HOST:PORT or a host. An IPv6
// client usually has all addresses of its network, so Stranger keeps only the first 64 bits.
func Stranger(address string) (kind Kind, name string) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().Is6() {
		network, _ := ip.WithZone("").Prefix(64)
		host = network.String()
	}
	return Anonymous, host
}

// Options configure a Budget.
type Options struct {
	// Certificates means that clients need a certificate for resources. Anonymous clients then get a small
	// share.
	Certificates bool
	// Full is called when a client is refused bytes while nine tenths of the Budget are held. Full is called
	// again only after a tenth of the Budget was free. Full may be nil.
	Full func()
	// Refused is called for each refusal with Refusal.Level, also for those during a Wait. Refused may be
	// nil.
	Refused func(level string)
}

// Budget is the memory for all clients. Budget is safe for concurrent use.
type Budget struct {
	options Options
	limit   int64 // as given to New, in bytes

	mu      sync.Mutex
	all     Account
	kinds   [2]Account
	peers   map[peer]*Account
	largest [2]largest // of the peers of each kind
	full    bool
	peak    int64         // largest all.held since the last call of Peak
	freed   chan struct{} // closed when bytes are given back; nil if no caller waits
}

// peer identifies a client by its certificate or its address.
type peer struct {
	kind Kind
	name string
}

// largest is a peer that holds at least half as much as the largest peer.
type largest struct {
	peer *Account // nil if unknown
	held int64    // the most that the peer has held since it became the largest
}

// With GOGC=50 the heap grows by half before a collection, so a held byte costs one and a half bytes of
// memory.
const (
	costs = 3
	per   = 2
)

// The limits of accounts: a peer has at most 1/partOfPeer of the limit of its kind, another account a part of
// the limit of the Budget.
const (
	partOfPeer       = 2
	partOfConnection = 4
	partOfStream     = 8
	partOfAnonymous  = 8
	// 1/partLate is reserved for evicted connections until their goroutines have ended.
	partLate = 16
)

// outweighs is how many times as many bytes as another peer a peer must hold before the peer loses
// connections in favor of the other.
const outweighs = 16

// Default is the default limit of a Budget, in bytes. With this limit, a server of a few thousand resources
// fits a container of 512 MiB.
const Default = 256 << 20

// New returns a Budget with a limit in bytes of resident memory. Accounts count bytes of the heap, of which
// clients may hold per/costs of the limit.
func New(limit int64, o Options) *Budget {
	b := &Budget{options: o, limit: limit, peers: make(map[peer]*Account)}
	most := limit * per / costs
	b.all = Account{budget: b, level: "all", most: most}
	anonymous, known := most-most/partOfAnonymous, most
	if o.Certificates {
		anonymous, known = known-anonymous, anonymous-most/partLate
	}
	b.kinds[Anonymous] = Account{budget: b, above: &b.all, level: "anonymous", most: anonymous}
	b.kinds[Known] = Account{budget: b, above: &b.all, level: "known", most: known}
	return b
}

// Limit returns the limit in bytes.
func (b *Budget) Limit() int64 { return b.limit }

// Held returns the bytes of resident memory that clients hold.
func (b *Budget) Held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.held * costs / per
}

// Peak returns the largest value of Held since the last call of Peak.
func (b *Budget) Peak() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	peak := b.peak
	b.peak = b.all.held
	return peak * costs / per
}

// Account counts the bytes of a client, connection or stream. Account is safe for concurrent use. A nil
// Account accepts and ignores everything.
type Account struct {
	budget *Budget
	above  *Account // nil for Budget.all and for a closed connection
	peer   peer     // of a peer or a connection
	level  string   // as in Refusal.Level
	most   int64    // the limit in bytes

	evict func(*Refusal) // of a connection

	// budget.mu protects the following fields.
	held        int64
	closed      bool
	identified  bool                  // of a connection
	connections map[*Account]struct{} // of a peer
}

// Connect opens the account of a connection. name identifies its peer within the kind. If the peer must lose
// the connection, the Budget closes the account and calls evict, which must close the connection without
// blocking. Connect on a nil Budget returns nil.
func (b *Budget) Connect(kind Kind, name string, evict func(*Refusal)) *Account {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &Account{budget: b, level: "connection", most: b.all.most / partOfConnection, evict: evict}
	c.join(peer{kind, name})
	return c
}

// join adds a connection to a peer. The caller holds the lock.
func (c *Account) join(p peer) {
	b := c.budget
	of := b.peers[p]
	if of == nil {
		kind := &b.kinds[p.kind]
		of = &Account{budget: b, above: kind, peer: p, level: "client", most: kind.most / partOfPeer, connections: make(map[*Account]struct{})}
		b.peers[p] = of
	}
	of.connections[c] = struct{}{}
	c.peer, c.above = p, of
}

// leave removes a connection from its peer. The caller holds the lock.
func (c *Account) leave() {
	of := c.above
	c.above = nil
	if delete(of.connections, c); len(of.connections) == 0 {
		delete(c.budget.peers, c.peer)
	}
}

// Identify moves a connection with its bytes to another peer. Call Identify when the client has presented its
// identity. Identify returns the errors of Take; the account then holds no bytes, and the caller must close
// the connection.
func (c *Account) Identify(kind Kind, name string) error {
	if c == nil {
		return nil
	}
	b := c.budget
	b.mu.Lock()
	if c.closed {
		b.mu.Unlock()
		return errClosed
	}
	held := c.held
	c.add(-held)
	c.leave()
	c.join(peer{kind, name})
	c.identified = true
	b.mu.Unlock()
	return c.Take(int(held))
}

// Open opens the account of a stream on a connection. The account of a nil connection is nil.
func (c *Account) Open() *Account {
	if c == nil {
		return nil
	}
	return &Account{budget: c.budget, above: c, level: "stream", most: c.budget.all.most / partOfStream}
}

var errClosed = status.Error(codes.Unavailable, "the connection is closed")

// Refusal is the error of an account at its limit.
type Refusal struct {
	// Level names the account at its limit: all, anonymous, known, client, connection or stream.
	Level string
	text  string
}

func (r *Refusal) Error() string { return r.text }

// GRPCStatus returns the status for the client.
func (r *Refusal) GRPCStatus() *status.Status { return status.New(codes.ResourceExhausted, r.text) }

// Half returns half of the account's limit, in bytes; math.MaxInt for a nil Account. Charge at most Half for
// a response, so that the server can send a response above the limit.
func (a *Account) Half() int {
	if a == nil {
		return math.MaxInt
	}
	return int(a.most / 2)
}

// Take charges bytes to the account, all or none. If a limit above the connection is reached, Take may first
// evict connections of the largest peer. The error is a *Refusal, or a gRPC status if the account or its
// connection is closed.
func (a *Account) Take(bytes int) error { return a.takeOr(bytes, false) }

// takeOr is Take. With spare, takeOr leaves a quarter of the memory to other callers, unless another peer
// must lose connections.
func (a *Account) takeOr(bytes int, spare bool) error {
	if a == nil {
		return nil
	}
	b := a.budget
	for {
		b.mu.Lock()
		err := a.take(int64(bytes), spare)
		refusal, _ := err.(*Refusal)
		if refusal == nil {
			b.mu.Unlock()
			return err
		}
		heavy := a.heavierPeer(int64(bytes), refusal)
		if heavy != nil && spare {
			b.mu.Unlock()
			spare = false
			continue
		}
		if heavy != nil {
			evict := heavy.evictOne()
			b.mu.Unlock()
			evict()
			continue
		}
		full := !b.full && b.all.held >= b.all.most*9/10
		b.full = b.full || full
		b.mu.Unlock()
		if b.options.Refused != nil {
			b.options.Refused(refusal.Level)
		}
		if full && b.options.Full != nil {
			b.options.Full()
		}
		return err
	}
}

// heavierPeer returns the peer that must lose connections after a refusal; nil for none. The caller holds the
// lock.
func (a *Account) heavierPeer(bytes int64, refusal *Refusal) *Account {
	if refusal.Level == "stream" || refusal.Level == "connection" {
		return nil
	}
	of := a
	for of.level != "client" {
		of = of.above
	}
	b := a.budget
	heavy := b.largestOf(of.peer.kind)
	if heavy == of || heavy.held == 0 || heavy.held < outweighs*(of.held+bytes) {
		return nil
	}
	return heavy
}

// largestOf returns a peer of a kind that holds at least half as much as the largest peer. The kind has a
// peer. The caller holds the lock.
func (b *Budget) largestOf(kind Kind) *Account {
	is := &b.largest[kind]
	if is.peer == nil || is.peer.held < is.held/2 {
		*is = largest{}
		for p, a := range b.peers {
			if p.kind == kind && (is.peer == nil || a.held > is.held) {
				*is = largest{a, a.held}
			}
		}
	}
	return is.peer
}

// evictOne closes the account of a connection of the peer, and returns the function that closes the
// connection, for a call without the lock. evictOne prefers unidentified connections, and among them the
// connection that holds the most. The caller holds the lock.
func (a *Account) evictOne() (evict func()) {
	var first *Account
	for c := range a.connections {
		if first == nil || first.identified && !c.identified || first.identified == c.identified && c.held > first.held {
			first = c
		}
	}
	refusal := &Refusal{a.level, fmt.Sprintf("no memory is left, and this client holds the most: its connections have %s, this one has %s; "+
		"raise --max-client-memory of the server (now %.0f MiB)", mib(a.held), mib(first.held), float64(a.budget.limit)/(1<<20))}
	first.close()
	return func() { first.evict(refusal) }
}

// take is Take for a caller that holds the lock. With spare, take leaves a quarter of the memory of the
// client and of the accounts above to other callers.
func (a *Account) take(bytes int64, spare bool) error {
	for is := a; is != nil; is = is.above {
		most := is.most
		if is.level == "client" && is.held > 0 { // leave as much for others as this client holds
			most = min(most, is.above.most-is.above.held)
		}
		if spare && is.level != "connection" && is.level != "stream" {
			most -= most / 4
		}
		switch {
		case is.closed:
			return errClosed
		case is.held+bytes > most:
			return &Refusal{is.level, is.refusal(bytes)}
		}
	}
	a.add(bytes)
	return nil
}

// mib formats held bytes as resident memory.
func mib(held int64) string { return fmt.Sprintf("%.1f MiB", float64(held)*costs/per/(1<<20)) }

// refusal returns a message with the limit of the account, the bytes that were refused, and the remedy.
func (a *Account) refusal(bytes int64) string {
	who := map[string]string{
		"all":        "all clients together have",
		"anonymous":  "clients that have shown no certificate have",
		"known":      "clients with a certificate have",
		"client":     "the connections of this client have",
		"connection": "this connection has",
		"stream":     "this stream has",
	}[a.level]
	return fmt.Sprintf("no memory is left for this: %s %s of %s, and needs %s more; request less, or raise --max-client-memory of the server (now %.0f MiB)",
		who, mib(a.held), mib(a.most), mib(bytes), float64(a.budget.limit)/(1<<20))
}

// add adds bytes, which may be negative, to the account and to the accounts above, up to the first closed
// account. The caller holds the lock.
func (a *Account) add(bytes int64) {
	b := a.budget
	for is := a; is != nil && !is.closed; is = is.above {
		is.held += bytes
		if is.level == "client" {
			switch l := &b.largest[is.peer.kind]; {
			case l.peer == is:
				l.held = max(l.held, is.held)
			case l.peer == nil || is.held > l.peer.held:
				*l = largest{is, is.held}
			}
		}
	}
	b.peak = max(b.peak, b.all.held)
	if bytes < 0 {
		b.full = b.full && b.all.held > b.all.most*9/10
		if b.freed != nil {
			close(b.freed)
			b.freed = nil
		}
	}
}

// Wait is Take, but waits for free bytes. If done is closed first, Wait returns the last *Refusal. Wait
// leaves a quarter of the memory to callers of Take.
func (a *Account) Wait(done <-chan struct{}, bytes int) error {
	if a == nil {
		return nil
	}
	for {
		b := a.budget
		b.mu.Lock()
		if b.freed == nil {
			b.freed = make(chan struct{})
		}
		freed := b.freed
		b.mu.Unlock()
		err := a.takeOr(bytes, true)
		if _, refused := err.(*Refusal); !refused {
			return err
		}
		select {
		case <-freed:
		case <-done:
			return err
		}
	}
}

// Give gives back bytes from Take. Give on a closed account does nothing.
func (a *Account) Give(bytes int) {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	a.add(-min(int64(bytes), a.held))
}

// Set changes a charge from was to now bytes, by Take or Give of the difference. If Take fails, the charge
// stays.
func (a *Account) Set(was, now int) error {
	if now > was {
		return a.Take(now - was)
	}
	a.Give(was - now)
	return nil
}

// Close gives back all bytes of the account. Further calls of Close do nothing. Take of a closed account
// returns an error.
func (a *Account) Close() {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	a.close()
}

// close is Close for a caller that holds the lock.
func (a *Account) close() {
	if a.closed {
		return
	}
	a.add(-a.held)
	a.closed = true
	if a.level == "connection" {
		a.leave()
	}
}
