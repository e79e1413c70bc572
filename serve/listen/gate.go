package listen

import (
	"container/list"
	"context"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"

	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/serve/memory"
	"xdspub/serve/turns"
)

// Gate limits connections. Several listeners may share a Gate.
type Gate struct {
	options GateOptions
	rate    *rate.Limiter

	mu   sync.Mutex
	most int
	open int
	// strangers are the connections without a call of Known, oldest first.
	strangers list.List
	full      bool // ConnectionsFull was logged
}

// GateOptions configure a Gate.
type GateOptions struct {
	// Connections is the largest number of open connections. A further connection replaces the oldest
	// connection that is not Known, so that a flood keeps no client out. If all connections are Known, the
	// Gate closes the further connection.
	Connections int
	// Rate is the largest number of new connections served per second. Further connections wait. Addresses
	// take turns, and the newest connection of an address is served first.
	Rate int
	// Budget limits the memory of connections; nil sets no limit.
	Budget *memory.Budget
	// Turns limits the processor time of handshakes; nil sets no limit.
	Turns *turns.Turns
	// Refused is called with the reason when the Budget closes a connection of the client that holds the most
	// memory. Refused must not be nil if Budget is not nil.
	Refused func(address string, err error)
	// Log receives the log lines; nil discards them.
	Log *event.Log
}

// NewGate returns a Gate.
func NewGate(o GateOptions) *Gate {
	return &Gate{options: o, most: o.Connections, rate: rate.NewLimiter(rate.Limit(o.Rate), o.Rate)}
}

// The memory of a connection in bytes. A new connection has a goroutine, and TLS buffers that grow with the
// bytes from the client. A served connection also has HTTP/2 buffers. e2e.TestAttack shows that these figures
// suffice.
const (
	newConnection    = 16 << 10
	servedConnection = 64 << 10
)

// Known marks a connection's client as identified: the Gate no longer closes the connection for another one.
// Known ignores a connection without a Gate.
func Known(conn net.Conn) {
	if c := gatedOf(conn); c != nil {
		c.gate.mu.Lock()
		defer c.gate.mu.Unlock()
		c.gate.removeStranger(c)
	}
}

// gatedOf returns the connection below TLS; nil if the connection has no Gate.
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

// Account returns the account of a connection; nil if the connection has no Gate.
func Account(conn net.Conn) *memory.Account {
	if c := gatedOf(conn); c != nil {
		return c.account
	}
	return nil
}

// Identify ends the handshake of a connection, and charges its memory to the named peer. Only the first call
// for a connection has an effect. The error is a gRPC status; the caller must then close the connection.
func Identify(conn net.Conn, kind memory.Kind, name string) error {
	c := gatedOf(conn)
	if c == nil || !c.shaken.CompareAndSwap(false, true) {
		return nil
	}
	c.giveTurn()
	if err := c.account.Identify(kind, name); err != nil {
		return err
	}
	return c.account.Set(newConnection+int(c.read.Load()), servedConnection)
}

// Written returns the number of bytes written to an accepted connection, including the bytes of TLS. Written
// returns 0 for a connection without a Gate, and for a connection inside TLS.
func Written(conn net.Conn) int64 {
	if c, ok := conn.(*gatedConn); ok {
		return c.written.Load()
	}
	return 0
}

// Open returns the number of open connections.
func (g *Gate) Open() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// admit admits a connection of a listener to the Gate. admit returns nil if the Gate is full or the budget
// has no memory; the caller must then close the connection.
func (g *Gate) admit(conn net.Conn, of *arrivals) *gatedConn {
	c := &gatedConn{Conn: conn, gate: g, arrivals: of}
	c.leave = sync.OnceFunc(c.giveBackPlace)
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
		oldest := g.popOldest(c.peer, is != nil && is.Level == "client")
		if oldest == nil {
			c.account.Close()
			return nil
		}
		oldest.Close()
	}
	oldest, ok, filled := g.addStranger(c)
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

// peerOf returns the peer of a new connection.
func peerOf(conn net.Conn) (kind memory.Kind, name string) {
	if conn.LocalAddr().Network() == "unix" {
		return memory.Local()
	}
	return memory.Stranger(conn.RemoteAddr().String())
}

// popOldest removes a connection from the strangers, and returns the connection for the caller to close: the
// oldest connection of the peer, or else the oldest of all peers. With own, popOldest returns only a
// connection of the peer. popOldest returns nil if no such connection exists.
func (g *Gate) popOldest(peer string, own bool) *gatedConn {
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
	g.removeStranger(c) // so that no other caller closes c
	return c
}

// addStranger counts an open connection, and adds the connection to the strangers. If the Gate is full,
// addStranger first removes the oldest stranger, which the caller must close. ok is false if a full Gate has
// no stranger: addStranger then adds nothing. filled reports whether the Gate has just become full.
func (g *Gate) addStranger(c *gatedConn) (oldest *gatedConn, ok, filled bool) {
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
		g.removeStranger(oldest)
	}
	c.place = g.strangers.PushBack(c)
	g.open++
	return oldest, true, filled
}

// removeStranger removes a connection from the strangers. The caller holds g.mu.
func (g *Gate) removeStranger(c *gatedConn) {
	if c.place != nil {
		g.strangers.Remove(c.place)
		c.place = nil
	}
}

// gatedConn is a connection with a place in a Gate.
type gatedConn struct {
	net.Conn
	gate  *Gate
	place *list.Element // in strangers; nil if Known or chosen for closing
	leave func()
	// account holds the connection's memory. peer is the name of the client's peer before Identify.
	account *memory.Account
	peer    string

	// at is the connection's place in the queue of arrivals; nil if Accept has returned the connection.
	arrivals *arrivals
	at       *list.Element // arrivals.mu protects it

	read, written atomic.Int64 // bytes; read stops counting after the handshake
	shaken        atomic.Bool  // the handshake is done

	// A handshake holds a turn only between two reads, never while it waits for the client.
	turns *turns.Client
	turn  atomic.Pointer[turns.Turn] // nil if the connection has no turn
}

// takeTurn waits for a turn for the computation after a read of the handshake.
func (c *gatedConn) takeTurn() {
	c.giveTurn()
	turn, _ := c.turns.Take(context.Background())     // the background context never ends
	if another := c.turn.Swap(turn); another != nil { // taken by another goroutine
		another.Give()
	}
	if c.shaken.Load() { // Identify was called meanwhile.
		c.giveTurn()
	}
}

// giveTurn gives back the connection's turn, if the connection has one.
func (c *gatedConn) giveTurn() {
	if turn := c.turn.Swap(nil); turn != nil {
		turn.Give()
	}
}

// withoutTurn calls f without a turn during a handshake, because f may take long.
func withoutTurn(conn net.Conn, f func()) {
	c := gatedOf(conn)
	if c == nil {
		f()
		return
	}
	c.giveTurn()
	f()
	c.takeTurn()
}

// Read reads from the connection. Until Identify, Read takes the memory of the bytes from the account, and
// fails if the account refuses.
func (c *gatedConn) Read(p []byte) (n int, err error) {
	defer c.caught(&err)
	c.giveTurn()
	n, err = c.Conn.Read(p)
	if c.shaken.Load() {
		return n, err
	}
	if n > 0 {
		if refused := c.account.Take(n); refused != nil {
			return 0, refused
		}
		c.read.Add(int64(n))
	}
	c.takeTurn()
	return n, err
}

// Write writes to the connection.
func (c *gatedConn) Write(p []byte) (n int, err error) {
	defer c.caught(&err)
	c.giveTurn()
	n, err = c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

// Close closes the connection, and gives back its place and its memory.
func (c *gatedConn) Close() (err error) {
	defer c.caught(&err)
	c.giveTurn()
	defer c.leave()
	return c.Conn.Close()
}

// caught logs the panic of the method that defers caught, and sets *err to the panic. The libraries call the methods on
// goroutines of their own.
func (c *gatedConn) caught(err *error) {
	if value := recover(); value != nil {
		e := crash.Of(value)
		c.gate.options.Log.Crashed(e)
		*err = e
	}
}

// giveBackPlace gives back the place and the memory of the connection.
func (c *gatedConn) giveBackPlace() {
	c.arrivals.drop(c)
	c.account.Close()
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	c.gate.open--
	c.gate.removeStranger(c)
}

// Close closes the connections that are not Known, so that they don't delay the shutdown of a server. From
// then on the Gate closes each new connection.
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
