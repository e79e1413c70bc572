package serve

import (
	"context"
	"errors"
	"io"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"xdspub/serve/admit"
	"xdspub/serve/listen"
)

// door admits the connections of gRPC clients. door implements credentials.TransportCredentials, because the
// library passes each new connection to its credentials.
type door struct {
	tls     credentials.TransportCredentials // nil for plain TCP
	judge   *admit.Judge
	crashes crashes
}

// newDoor returns a door that speaks TLS with keys, or plain TCP if keys is nil.
func newDoor(keys *listen.Keys, judge *admit.Judge, c crashes) *door {
	d := &door{judge: judge, crashes: c}
	if keys != nil {
		d.tls = credentials.NewTLS(keys.Config(false))
	}
	return d
}

// arrival describes an accepted connection.
type arrival struct {
	credentials.CommonAuthInfo
	client admit.Client
	conn   net.Conn
	// transit is the connection as the library reads it; nil if no door has admitted the connection.
	transit *transit
}

// AuthType implements credentials.AuthInfo.
func (arrival) AuthType() string { return "xdspub" }

// ServerHandshake does the TLS handshake of a new connection, and admits the connection. Connections to Unix
// sockets have no TLS.
func (d *door) ServerHandshake(conn net.Conn) (_ net.Conn, _ credentials.AuthInfo, err error) {
	defer func() { // the library calls ServerHandshake on a goroutine of its own
		if err == errCrashed {
			conn.Close()
		}
	}()
	defer d.crashes.status("admitting a gRPC connection", &err)
	a := arrival{conn: conn, client: admit.Client{Address: conn.RemoteAddr().String(), Loopback: admit.IsLoopback(conn.LocalAddr())}}
	if conn.LocalAddr().Network() == "unix" {
		a.client = admit.Client{Local: true}
		return d.admit(conn, a)
	}
	if d.tls == nil {
		return d.admit(conn, a)
	}
	secured, info, err := d.tls.ServerHandshake(conn)
	if err != nil {
		conn.Close()                                                   // gives back the connection's turn
		if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) { // not just a probe of the port
			d.judge.Refused(a.client.Address, "handshake", err)
		}
		return nil, nil, err
	}
	a.client.TLS = true
	if state := info.(credentials.TLSInfo).State; len(state.PeerCertificates) > 0 {
		a.client.Certificate = state.PeerCertificates[0]
	}
	return d.admit(secured, a)
}

// admit admits a connection after the handshake.
func (d *door) admit(conn net.Conn, a arrival) (net.Conn, credentials.AuthInfo, error) {
	if err := identify(a.conn, a.client); err != nil {
		d.judge.Refused(a.client.Address, "memory", err)
		return nil, nil, err
	}
	a.transit = newTransit(conn, listen.Account(a.conn), a.client, d.judge, d.crashes)
	return a.transit, a, nil
}

// identify charges a connection's memory to its client. The error is a gRPC status: no memory is left for the
// client, or the connection is closed.
func identify(conn net.Conn, c admit.Client) error {
	kind, name := c.Peer()
	return listen.Identify(conn, kind, name)
}

// ClientHandshake always fails: door has no client side.
func (d *door) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these credentials are for servers only")
}

// Info returns the security protocol of the connections.
func (d *door) Info() credentials.ProtocolInfo {
	if d.tls != nil {
		return d.tls.Info()
	}
	return credentials.ProtocolInfo{SecurityProtocol: "insecure"}
}

// Clone returns a copy of the door.
func (d *door) Clone() credentials.TransportCredentials { return &door{d.tls, d.judge, d.crashes} }

// OverrideServerName does nothing; only clients need a server name.
func (d *door) OverrideServerName(string) error { return nil }

// arrivalOf returns the connection of a stream; the zero arrival if the stream has none.
func arrivalOf(ctx context.Context) arrival {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return arrival{}
	}
	a, _ := p.AuthInfo.(arrival)
	return a
}
