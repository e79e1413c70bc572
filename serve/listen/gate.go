package listen

import (
	"container/list"
	"context"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"

	"xdspub/event"
	"xdspub/serve/memory"
	"xdspub/serve/turns"
)

// Gate lets connections in. Several listeners may have the same Gate.
type Gate struct {
	options GateOptions
	rate    *rate.Limiter

	mu   sync.Mutex
	most int
	open int
	// strangers are those connections that are not Known yet, the oldest first.
	strangers list.List
	full      bool // is logged
}

// GateOptions say how many connections a Gate lets in.
type GateOptions struct {
	// Connections is the number of connections at a time. A further connection takes the place of the oldest connection that is not
	// Known, so that a flood keeps nobody out. If all connections are Known, the further connection is closed.
	Connections int
	// Rate is the number of new connections that are served in a second. Other connections wait. Addresses take turns, and the newest
	// connection of an address is served first.
	Rate int
	// Budget has the memory that connections hold; nil for no bound.
	Budget *memory.Budget
	// Turns are the turns of the processors that handshakes take; nil for no bound.
	Turns *turns.Turns
	// Refused is told why a connection is closed of a client that holds the most memory.
	Refused func(address string, err error)
	Log     *event.Log
}

// NewGate returns a Gate.
func NewGate(o GateOptions) *Gate {
	return &Gate{options: o, most: o.Connections, rate: rate.NewLimiter(rate.Limit(o.Rate), o.Rate)}
}

// The bytes that a connection holds. A new connection has a goroutine, and buffers of TLS that grow with what the client
// sends. A connection that is served has the buffers of HTTP/2 as well. e2e.TestAttack shows that it
// is enough.
const (
	newConnection    = 16 << 10
	servedConnection = 64 << 10
)

// Known says that the client of a connection has shown who it is: the connection stays until
// one of the two ends closes it. A connection that came through no Gate is left as it is.
func Known(conn net.Conn) {
	if c := gatedOf(conn); c != nil {
		c.gate.mu.Lock()
		defer c.gate.mu.Unlock()
		c.gate.recognize(c)
	}
}

// gatedOf returns the connection below TLS, nil for a connection that came through no Gate.
func gatedOf(conn net.Conn) *gatedConn {
	for {
		switch c := conn.(type) {
		case *gatedConn:
			return c
		case interface{ NetConn() net.Conn }: // of TLS
			conn = c.NetConn()
		default:
			return nil
		}
	}
}

// Account returns the memory that a connection holds, nil for a connection that came through no Gate.
func Account(conn net.Conn) *memory.Account {
	if c := gatedOf(conn); c != nil {
		return c.account
	}
	return nil
}

// Identify says that the handshake of a connection is done, and that its client is the peer of that name. The
// error is a status of gRPC: the connection is to be closed.
func Identify(conn net.Conn, kind memory.Kind, name string) error {
	c := gatedOf(conn)
	if c == nil || !c.shaken.CompareAndSwap(false, true) {
		return nil
	}
	c.rest()
	if err := c.account.Identify(kind, name); err != nil {
		return err
	}
	return c.account.Set(newConnection+int(c.read.Load()), servedConnection)
}

// Written returns how many bytes were written to a connection, those of TLS included. It is 0 for
// one that came through no Gate.
func Written(conn net.Conn) int64 {
	if c, ok := conn.(*gatedConn); ok {
		return c.written.Load()
	}
	return 0
}

// Open returns how many connections there are.
func (g *Gate) Open() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// enter returns a connection of a listener as one of the Gate's, nil if there is no place.
func (g *Gate) enter(conn net.Conn, of *arrivals) *gatedConn {
	c := &gatedConn{Conn: conn, gate: g, arrivals: of}
	c.leave = sync.OnceFunc(c.left)
	var kind memory.Kind
	kind, c.peer = peerOf(conn)
	if g.options.Turns != nil {
		c.turns = g.options.Turns.Client(c.peer)
	}
	c.account = g.options.Budget.Connect(kind, c.peer, func(r *memory.Refusal) {
		c.Close()
		g.options.Refused(conn.RemoteAddr().String(), r)
	})
	for refused := c.account.Take(newConnection); refused != nil; refused = c.account.Take(newConnection) {
		is, _ := refused.(*memory.Refusal)
		oldest := g.oldest(c.peer, is != nil && is.Level == "client")
		if oldest == nil {
			c.account.Close()
			return nil
		}
		oldest.Close()
	}
	oldest, ok, filled := g.take(c)
	if filled {
		g.options.Log.Write(event.ConnectionsFull{Connections: g.options.Connections})
	}
	if !ok {
		c.account.Close()
		return nil
	}
	if oldest != nil {
		oldest.Close()
	}
	return c
}

// peerOf returns who is at the other end of a new connection.
func peerOf(conn net.Conn) (kind memory.Kind, name string) {
	if conn.LocalAddr().Network() == "unix" {
		return memory.Local()
	}
	return memory.Stranger(conn.RemoteAddr().String())
}

// oldest takes the oldest connection that is not Known from the strangers, if there is one of a peer that one, and
// returns nil if there is none. own means that the connections of other peers stay. The caller closes the connection.
func (g *Gate) oldest(peer string, own bool) *gatedConn {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := g.strangers.Front()
	for e := first; e != nil; e = e.Next() {
		if e.Value.(*gatedConn).peer == peer {
			first, own = e, false
			break
		}
	}
	if first == nil || own {
		return nil
	}
	c := first.Value.(*gatedConn)
	g.recognize(c) // nobody else is to close it
	return c
}

// take gives a connection a place, if need be that of the oldest stranger, which is to be closed.
// filled is true where there were free places when it was called last.
func (g *Gate) take(c *gatedConn) (oldest *gatedConn, ok, filled bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open < g.most {
		g.full = g.full && g.open > g.most*9/10
	} else {
		filled, g.full = !g.full, true
		first := g.strangers.Front()
		if first == nil {
			return nil, false, filled
		}
		oldest = first.Value.(*gatedConn)
		g.recognize(oldest)
	}
	c.place = g.strangers.PushBack(c)
	g.open++
	return oldest, true, filled
}

// recognize makes a connection no stranger. The caller holds g.mu.
func (g *Gate) recognize(c *gatedConn) {
	if c.place != nil {
		g.strangers.Remove(c.place)
		c.place = nil
	}
}

// gatedConn is a connection that takes one of the places of a Gate.
type gatedConn struct {
	net.Conn
	gate  *Gate
	place *list.Element // among the strangers; nil once it is known
	leave func()
	// account is the memory that the connection holds, peer the name of its client when it came.
	account *memory.Account
	peer    string

	// arrivals has the connection at a place until it is served.
	arrivals *arrivals
	at       *list.Element // arrivals.mu protects it

	read, written atomic.Int64
	shaken        atomic.Bool // the handshake is done

	// A handshake takes turns for what it does between two reads: it has no turn while it waits for its client.
	turns *turns.Client
	turn  atomic.Pointer[turns.Turn] // nil for none
}

// work takes a turn for what follows a read of the handshake.
func (c *gatedConn) work() {
	c.rest()
	turn, _ := c.turns.Take(context.Background())     // which does not end
	if another := c.turn.Swap(turn); another != nil { // of another goroutine
		another.Give()
	}
	if c.shaken.Load() { // Identify was called meanwhile.
		c.rest()
	}
}

// rest gives back the turn that the connection has, if any.
func (c *gatedConn) rest() {
	if turn := c.turn.Swap(nil); turn != nil {
		turn.Give()
	}
}

// withoutTurn calls f, which may take long, during the handshake of a connection.
func withoutTurn(conn net.Conn, f func()) {
	c := gatedOf(conn)
	if c == nil {
		f()
		return
	}
	c.rest()
	f()
	c.work()
}

// Read reads from the connection. The bytes of a handshake are held until it is done.
func (c *gatedConn) Read(p []byte) (int, error) {
	c.rest()
	n, err := c.Conn.Read(p)
	if c.shaken.Load() {
		return n, err
	}
	if n > 0 {
		if refused := c.account.Take(n); refused != nil {
			return 0, refused
		}
		c.read.Add(int64(n))
	}
	c.work()
	return n, err
}

// Write writes to the connection.
func (c *gatedConn) Write(p []byte) (int, error) {
	c.rest()
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

// Close closes the connection, and gives back its place.
func (c *gatedConn) Close() error {
	c.rest()
	defer c.leave()
	return c.Conn.Close()
}

func (c *gatedConn) left() {
	c.arrivals.gone(c)
	c.account.Close()
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	c.gate.open--
	c.gate.recognize(c)
}

// Close closes all connections that are not Known, and those that come: they hold up the end of a
// server.
func (g *Gate) Close() {
	g.mu.Lock()
	g.most = 0
	var strangers []*gatedConn
	for e := g.strangers.Front(); e != nil; e = e.Next() {
		strangers = append(strangers, e.Value.(*gatedConn))
	}
	g.mu.Unlock()
	for _, c := range strangers {
		c.Close()
	}
}
