package control

import (
	"net"
	"sync"
	"time"
)

// grace is how long each connection stays open at least. By then the Server has read the request of a client
// that sends its request at once.
const grace = 100 * time.Millisecond

// connections limits the number of open connections to its slots. If all slots are taken, connections older
// than grace are closed, unless they wait for the watch. So a proper client waits at most for the grace of
// other clients, however many of them hang.
type connections struct {
	net.Listener
	slots chan struct{}

	mu   sync.Mutex
	open map[*connection]bool // value: the connection waits for the watch
}

func newConnections(l net.Listener, slots chan struct{}) *connections {
	return &connections{Listener: l, slots: slots, open: make(map[*connection]bool)}
}

func (l *connections) Accept() (net.Conn, error) {
	for taken := false; !taken; {
		select {
		case l.slots <- struct{}{}:
			taken = true
		case <-time.After(grace):
			l.makeRoom()
		}
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	c := &connection{Conn: conn, of: l, since: time.Now()}
	c.free = sync.OnceFunc(func() { <-l.slots })
	l.mu.Lock()
	l.open[c] = false
	l.mu.Unlock()
	return c, nil
}

// makeRoom closes the connections whose grace is over.
func (l *connections) makeRoom() {
	l.mu.Lock()
	var old []*connection
	for c, waits := range l.open {
		if !waits && time.Since(c.since) >= grace {
			old = append(old, c)
			delete(l.open, c)
		}
	}
	l.mu.Unlock()
	for _, c := range old {
		c.Close()
	}
}

type connection struct {
	net.Conn
	of    *connections
	since time.Time
	free  func()
}

// wait sets whether the connection waits for the watch. wait returns false if the connection was closed to
// make room.
func (c *connection) wait(waits bool) bool {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	_, open := c.of.open[c]
	if open {
		c.of.open[c] = waits
	}
	return open
}

func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	defer c.free()
	return c.Conn.Close()
}
