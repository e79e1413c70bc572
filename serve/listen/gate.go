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
)

// Gate lets connections in, of all listeners that have it.
type Gate struct {
	most   int
	rate   *rate.Limiter
	budget *memory.Budget
	// refused says why a connection of an address is closed.
	refused func(address string, err error)
	log     *event.Log

	mu   sync.Mutex
	open int
	// strangers are those connections that are not Known yet, the oldest first.
	strangers list.List
	full      bool // is logged
}

// NewGate returns a Gate for so many connections at a time, and so many new ones in a second;
// more of them wait. Each connection holds memory of the budget. If no place or no memory is left, the oldest connection
// that is not Known is closed, so that a flood of these keeps nobody out. If all connections are Known, the new one
// is closed.
// refused is told why a connection with an address is closed of a client that holds the most memory.
func NewGate(connections, perSecond int, budget *memory.Budget, refused func(address string, err error), log *event.Log) *Gate {
	return &Gate{most: connections, rate: rate.NewLimiter(rate.Limit(perSecond), perSecond), budget: budget, refused: refused, log: log}
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

// enter returns the connection as one of the Gate's, nil where there is no place.
func (g *Gate) enter(conn net.Conn) net.Conn {
	c := &gatedConn{Conn: conn, gate: g}
	c.leave = sync.OnceFunc(c.left)
	var kind memory.Kind
	kind, c.peer = peerOf(conn)
	c.account = g.budget.Connect(kind, c.peer, func(r *memory.Refusal) {
		c.Close()
		g.refused(conn.RemoteAddr().String(), r)
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
		g.log.Write(event.ConnectionsFull{Connections: g.most})
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

// gated is a listener with a Gate.
type gated struct {
	net.Listener
	gate *Gate
}

func (l *gated) Accept() (net.Conn, error) {
	for {
		if err := l.gate.rate.Wait(context.Background()); err != nil {
			return nil, err
		}
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.gate.enter(conn); c != nil {
			return c, nil
		}
		conn.Close()
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

	read, written atomic.Int64
	shaken        atomic.Bool // the handshake is done
}

// Read reads from the connection. The bytes of a handshake are held until it is done.
func (c *gatedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.shaken.Load() {
		if refused := c.account.Take(n); refused != nil {
			return 0, refused
		}
		c.read.Add(int64(n))
	}
	return n, err
}

// Write writes to the connection.
func (c *gatedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

// Close closes the connection, and gives back its place.
func (c *gatedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

func (c *gatedConn) left() {
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
