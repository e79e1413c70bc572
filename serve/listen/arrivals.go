package listen

import (
	"container/list"
	"context"
	"net"
	"sync"

	"xdspub/internal/crash"
)

// arrivals is a listener with a Gate. arrivals accepts connections at once, and returns them from Accept at
// the rate of the Gate. Otherwise the connections of a flood would wait in the kernel's queue before the
// connections of other clients.
type arrivals struct {
	net.Listener
	gate  *Gate
	start sync.Once
	some  chan struct{} // has an element if a connection may wait for Accept
	fails chan error    // errors of the listener, for Accept
	close func()        // closes ended
	ended chan struct{}

	mu    sync.Mutex
	order list.List                // of *list.List: the waiting connections of one address, newest last; next address first
	of    map[string]*list.Element // elements of order by address
}

func newArrivals(l net.Listener, gate *Gate) *arrivals {
	ended := make(chan struct{})
	return &arrivals{
		Listener: l, gate: gate, some: make(chan struct{}, 1), fails: make(chan error),
		ended: ended, close: sync.OnceFunc(func() { close(ended) }), of: make(map[string]*list.Element),
	}
}

// Close closes the listener and the waiting connections.
func (l *arrivals) Close() error {
	err := l.Listener.Close()
	l.close()
	for c := l.dequeue(); c != nil; c = l.dequeue() {
		c.Close()
	}
	return err
}

// Accept returns the next connection to serve. Addresses take turns, and the newest connection of an address
// comes first.
func (l *arrivals) Accept() (net.Conn, error) {
	l.start.Do(func() { go crash.Again(l.ended, l.accept, l.gate.options.Log.Crashed)() })
	for {
		select {
		case <-l.some:
		case err := <-l.fails:
			return nil, err
		case <-l.ended:
			return nil, net.ErrClosed
		}
		if err := l.gate.rate.Wait(context.Background()); err != nil {
			return nil, err
		}
		if c := l.dequeue(); c != nil {
			return c, nil
		}
	}
}

// accept accepts connections until the listener is closed.
func (l *arrivals) accept() {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			select {
			case l.fails <- err: // The caller of Accept knows how long to wait.
				continue
			case <-l.ended:
				return
			}
		}
		if e := crash.Try(func() { l.admit(conn) }); e != nil {
			conn.Close()
			l.gate.options.Log.Crashed(e)
		}
	}
}

// admit queues a connection for Accept, or closes the connection.
func (l *arrivals) admit(conn net.Conn) {
	if c := l.gate.admit(conn, l); c != nil {
		l.enqueue(c)
	} else {
		conn.Close()
	}
}

// enqueue adds a connection to the queue of Accept. After Close, enqueue closes the connection.
func (l *arrivals) enqueue(c *gatedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.ended:
		go crash.Guard(func() { c.Close() }, l.gate.options.Log.Crashed)() // Close needs the lock.
		return
	default:
	}
	peer := l.of[c.peer]
	if peer == nil {
		peer = l.order.PushBack(list.New())
		l.of[c.peer] = peer
	}
	c.at = peer.Value.(*list.List).PushBack(c)
	l.signal()
}

// signal wakes Accept. The caller holds the lock.
func (l *arrivals) signal() {
	select {
	case l.some <- struct{}{}:
	default:
	}
}

// dequeue removes the newest connection of the next address from the queue; nil if the queue is empty.
func (l *arrivals) dequeue() *gatedConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.order.Front()
	if first == nil {
		return nil
	}
	c := first.Value.(*list.List).Back().Value.(*gatedConn)
	l.order.MoveToBack(first)
	l.remove(c)
	if l.order.Len() > 0 {
		l.signal()
	}
	return c
}

// remove removes a connection from the queue. The caller holds the lock.
func (l *arrivals) remove(c *gatedConn) {
	peer := l.of[c.peer]
	if peer.Value.(*list.List).Remove(c.at); peer.Value.(*list.List).Len() == 0 {
		l.order.Remove(peer)
		delete(l.of, c.peer)
	}
	c.at = nil
}

// drop removes a closed connection from the queue, if Accept hasn't returned the connection.
func (l *arrivals) drop(c *gatedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.at != nil {
		l.remove(c)
	}
}
