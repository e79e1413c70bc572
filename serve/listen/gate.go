package listen

import (
	"container/list"
	"context"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"

	"xdspub/event"
)

// Gate lets connections in, of all listeners that have it.
type Gate struct {
	most int
	rate *rate.Limiter
	log  *event.Log

	mu   sync.Mutex
	open int
	// strangers are those connections that are not Known yet, the oldest first.
	strangers list.List
	full      bool // is logged
}

// NewGate returns a Gate for so many connections at a time, and so many new ones in a second;
// more of them wait. Where all are taken, the oldest connection that is not Known gives up its place, so
// that a flood of these keeps nobody out; where all are Known, the new one is closed.
func NewGate(connections, perSecond int, log *event.Log) *Gate {
	return &Gate{most: connections, rate: rate.NewLimiter(rate.Limit(perSecond), perSecond), log: log}
}

// Known says that the client of a connection has shown who it is: the connection stays until
// one of the two ends closes it. A connection that came through no Gate is left as it is.
func Known(conn net.Conn) {
	for {
		switch c := conn.(type) {
		case *gatedConn:
			c.gate.mu.Lock()
			defer c.gate.mu.Unlock()
			c.gate.recognize(c)
			return
		case interface{ NetConn() net.Conn }: // of TLS
			conn = c.NetConn()
		default:
			return
		}
	}
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
	oldest, ok, filled := g.take(c)
	if filled {
		g.log.Write(event.ConnectionsFull{Connections: g.most})
	}
	if !ok {
		return nil
	}
	if oldest != nil {
		oldest.Close()
	}
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
		g.recognize(oldest) // nobody else is to close it
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

	written atomic.Int64
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
