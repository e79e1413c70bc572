// Package memory bounds the memory that clients can make a server hold.
//
//	budget := memory.New(256<<20, memory.Options{})
//	connection := budget.Connect(memory.Anonymous, "192.0.2.1", conn.Evict)
//	stream := connection.Open()
//	err = stream.Take(100_000)
//	stream.Close()
//	connection.Close()
//
// An Account holds bytes, and so do the accounts above it: a stream holds bytes of its connection, a connection holds
// bytes of its peer, a peer holds bytes of the clients of its kind, and these hold bytes of the Budget. Each of them has a limit.
//
// If no bytes are left for a peer, the peer of that kind that holds the most loses connections, provided that it holds
// many times as much. So a few peers can't take the memory of all others.
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

// Kind is a kind of clients. Each kind has a share of the Budget.
type Kind int

const (
	// Anonymous is the kind of a client that has no certificate, or has not shown one yet.
	Anonymous Kind = iota
	// Known is the kind of a client that has shown a certificate, or has connected by a Unix socket.
	Known
)

// Local returns the peer of all connections by a Unix socket.
func Local() (kind Kind, name string) { return Known, "unix" }

// Stranger returns the peer of connections from an address, HOST:PORT, whose client has shown no certificate. By IPv6 a client has
// all addresses of a network: the first 64 bits count.
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

// Options of a Budget.
type Options struct {
	// Certificates means that clients need a certificate for what is served. The share of Anonymous clients is small then.
	Certificates bool
	// Full is called when a client is refused bytes while nine tenths of the Budget are held. It is called again only after a
	// tenth of the Budget was free. It may be nil.
	Full func()
	// Refused is called for each refusal, with its Level. It may be nil.
	Refused func(level string)
}

// Budget is the memory for all clients. It may be used from any goroutine.
type Budget struct {
	options Options
	limit   int64 // as it was given, in bytes

	mu      sync.Mutex
	all     Account
	kinds   [2]Account
	peers   map[peer]*Account
	largest [2]largest // of the peers of each kind
	full    bool
	peak    int64         // the largest all.held since the last call of Peak
	freed   chan struct{} // closed once bytes are given back; nil where nobody waits
}

// peer is one client by its identity: the certificate, or the address.
type peer struct {
	kind Kind
	name string
}

// largest is a peer that holds the most, or half of the most.
type largest struct {
	peer *Account // nil for none
	held int64    // the most that the peer has held while it was the largest
}

// A garbage collector lets the heap grow by half before it collects (GOGC=50), so that a byte that is held costs one and a half.
const (
	costs = 3
	per   = 2
)

// The limits of accounts, in parts of the Budget.
const (
	partOfPeer       = 2
	partOfConnection = 4
	partOfStream     = 8
	partOfAnonymous  = 8
	// partLate is left for what connections that have given way hold until their goroutines have ended.
	partLate = 16
)

// outweighs is how many times as much as another peer a peer holds if its connections give way to those of the other one.
const outweighs = 16

// Default is the usual limit of a Budget, in bytes. A server of a few thousand resources with this limit fits a container of
// 512 MiB.
const Default = 256 << 20

// New returns a Budget of so many bytes of resident memory.
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

// Held returns how many bytes clients hold, in bytes of resident memory.
func (b *Budget) Held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.held * costs / per
}

// Peak returns the most that clients have held since the last call, in bytes of resident memory.
func (b *Budget) Peak() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	peak := b.peak
	b.peak = b.all.held
	return peak * costs / per
}

// Account is what one client, connection or stream holds. It may be used from any goroutine. A nil Account holds
// nothing and refuses nothing.
type Account struct {
	budget *Budget
	above  *Account
	peer   peer // of a connection
	level  string
	most   int64

	evict func(*Refusal) // of a connection

	// budget.mu protects these.
	held        int64
	closed      bool
	identified  bool                  // of a connection
	connections map[*Account]struct{} // of a peer
}

// Connect opens the account of a connection. name tells its peer from others. evict closes the connection because the peer
// gives way to one that holds less; the account is closed by then. evict must not wait for anything. A nil Budget has nil accounts.
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

// join makes a connection one of a peer. The caller holds the lock.
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

// leave takes a connection from its peer. The caller holds the lock.
func (c *Account) leave() {
	of := c.above
	c.above = nil
	if delete(of.connections, c); len(of.connections) == 0 {
		delete(c.budget.peers, c.peer)
	}
}

// Identify moves a connection, with the bytes that it holds, to another peer. It is called once the client has shown who
// it is. The error is that of Take.
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

// Open opens the account of a stream of a connection.
func (c *Account) Open() *Account {
	if c == nil {
		return nil
	}
	return &Account{budget: c.budget, above: c, level: "stream", most: c.budget.all.most / partOfStream}
}

var errClosed = status.Error(codes.Unavailable, "the connection is closed")

// Refusal is the error of an account that may not hold more.
type Refusal struct {
	// Level is the account whose limit is reached: all, anonymous, known, client, connection or stream.
	Level string
	text  string
}

func (r *Refusal) Error() string { return r.text }

// GRPCStatus returns the status that the client gets.
func (r *Refusal) GRPCStatus() *status.Status { return status.New(codes.ResourceExhausted, r.text) }

// Half returns half of the limit of the account, in bytes. A single response counts as that at most, so that a large tree
// can be sent.
func (a *Account) Half() int {
	if a == nil {
		return math.MaxInt
	}
	return int(a.most / 2)
}

// Take holds more bytes, or returns an error and holds none of them. The error is a *Refusal, or the status of a
// connection that is closed.
func (a *Account) Take(bytes int) error { return a.takeOr(bytes, false) }

// takeOr is Take, of a caller that spares memory or does not. A peer that others outweigh spares none.
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
		heavy := a.outweighed(int64(bytes), refusal)
		if heavy != nil && spare {
			b.mu.Unlock()
			spare = false
			continue
		}
		if heavy != nil {
			evict := heavy.giveWay()
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

// outweighed returns the peer whose connections give way after a refusal, nil if there is none. The caller holds the lock.
func (a *Account) outweighed(bytes int64, refusal *Refusal) *Account {
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

// largestOf returns the peer of a kind that holds the most, or half of the most. There is such a peer. The caller holds the lock.
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

// giveWay closes the account of one connection of a peer, and returns the function that closes the connection. giveWay prefers
// connections that were not identified, and among them the connection that holds the most. The caller holds the lock.
func (a *Account) giveWay() (evict func()) {
	var first *Account
	for c := range a.connections {
		if first == nil || first.identified && !c.identified || first.identified == c.identified && c.held > first.held {
			first = c
		}
	}
	refusal := &Refusal{a.level, fmt.Sprintf("no memory is left, and this client holds the most: its connections have %s, this one has %s; raise --max-client-memory of the server (now %.0f MiB)", mib(a.held), mib(first.held), float64(a.budget.limit)/(1<<20))}
	first.close()
	return func() { first.evict(refusal) }
}

// take is Take of a caller that holds the lock. spare leaves a quarter of the memory of a client, and of all, to others
// that take.
func (a *Account) take(bytes int64, spare bool) error {
	for is := a; is != nil; is = is.above {
		most := is.most
		if is.level == "client" && is.held > 0 { // so that what many clients hold leaves as much for another one
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

// mib writes what an account holds as resident memory.
func mib(held int64) string { return fmt.Sprintf("%.1f MiB", float64(held)*costs/per/(1<<20)) }

// refusal says which limit is reached, and the remedy.
func (a *Account) refusal(bytes int64) string {
	who := map[string]string{
		"all":        "all clients together have",
		"anonymous":  "clients that have shown no certificate have",
		"known":      "clients with a certificate have",
		"client":     "the connections of this client have",
		"connection": "this connection has",
		"stream":     "this stream has",
	}[a.level]
	return fmt.Sprintf("no memory is left for this: %s %s of %s, and asks for %s; ask for less, or raise --max-client-memory of the server (now %.0f MiB)", who, mib(a.held), mib(a.most), mib(bytes), float64(a.budget.limit)/(1<<20))
}

// add changes what the account and those above it hold. The caller holds the lock.
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

// Wait is Take that waits for bytes until done is closed. It leaves some memory to those who do not wait.
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

// Give gives bytes back that Take has taken.
func (a *Account) Give(bytes int) {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	a.add(-min(int64(bytes), a.held))
}

// Set makes the account hold now bytes for something that it held was bytes for. It is Take or Give of the difference.
func (a *Account) Set(was, now int) error {
	if now > was {
		return a.Take(now - was)
	}
	a.Give(was - now)
	return nil
}

// Close gives back all that the account holds. Calls after the first one do nothing.
func (a *Account) Close() {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	a.close()
}

// close is Close of a caller that holds the lock.
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
