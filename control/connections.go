package control

import (
	"net"
	"sync"
)

// connections accepts no more connections at a time than it has slots. Further
// clients wait until one is free, which the timeouts of the server see to.
type connections struct {
	net.Listener
	slots chan struct{}
}

func (l connections) Accept() (net.Conn, error) {
	l.slots <- struct{}{}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &connection{Conn: conn, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

type connection struct {
	net.Conn
	free func()
}

func (c *connection) Close() error {
	defer c.free()
	return c.Conn.Close()
}
