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

// door lets the connections of gRPC clients in. It stands where the library has its credentials,
// because it learns of each connection there.
type door struct {
	tls   credentials.TransportCredentials // nil for none
	judge *admit.Judge
}

// newDoor returns a door with the certificates of TLS; nil for none.
func newDoor(keys *listen.Keys, judge *admit.Judge) *door {
	d := &door{judge: judge}
	if keys != nil {
		d.tls = credentials.NewTLS(keys.Config(false))
	}
	return d
}

// arrival is what is known of a connection.
type arrival struct {
	credentials.CommonAuthInfo
	client admit.Client
	conn   net.Conn
	// transit is what the library reads from; nil for an arrival that came by no door.
	transit *transit
}

// AuthType names it.
func (arrival) AuthType() string { return "xdspub" }

// ServerHandshake is called for each connection. Those of Unix sockets have no TLS.
func (d *door) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
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
		conn.Close()                                                   // which gives its turn back
		if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) { // of who looks whether the port is open
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

// admit lets a client in that has shown who it is.
func (d *door) admit(conn net.Conn, a arrival) (net.Conn, credentials.AuthInfo, error) {
	if err := identify(a.conn, a.client); err != nil {
		d.judge.Refused(a.client.Address, "memory", err)
		return nil, nil, err
	}
	a.transit = newTransit(conn, listen.Account(a.conn), a.client, d.judge)
	return a.transit, a, nil
}

// identify tells whose memory a connection holds. The error means that its client has no memory left.
func identify(conn net.Conn, c admit.Client) error {
	kind, name := c.Peer()
	return listen.Identify(conn, kind, name)
}

// ClientHandshake is for clients.
func (d *door) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("a server's credentials")
}

// Info says what the connections have.
func (d *door) Info() credentials.ProtocolInfo {
	if d.tls != nil {
		return d.tls.Info()
	}
	return credentials.ProtocolInfo{SecurityProtocol: "insecure"}
}

// Clone returns a copy.
func (d *door) Clone() credentials.TransportCredentials { return &door{d.tls, d.judge} }

// OverrideServerName does nothing: it is for clients.
func (d *door) OverrideServerName(string) error { return nil }

// arrivalOf returns what is known of the connection of a stream.
func arrivalOf(ctx context.Context) arrival {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return arrival{}
	}
	a, _ := p.AuthInfo.(arrival)
	return a
}
