package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"xdspub/diag"
	"xdspub/internal/crash"
	"xdspub/xds"
)

// link has the streams of a session.
type link struct {
	conn      grpc.ClientConnInterface
	transport Transport
	node      *corev3.Node
	codec     codec
	streams   map[*xds.Type]grpc.ClientStream // by type; the stream of an aggregated transport is under nil
	received  chan response
	failed    chan error // why a stream has ended
}

func newLink(conn grpc.ClientConnInterface, o *Options) *link {
	return &link{
		conn: conn, transport: o.Transport, node: o.Node, codec: o.Transport.codec(o.Params), streams: make(map[*xds.Type]grpc.ClientStream),
		received: make(chan response), failed: make(chan error, 2*len(xds.Types)),
	}
}

// send sends a request. The first request for a stream opens the stream. After an error, no further request can be
// sent, and failed gets the reason.
func (l *link) send(ctx context.Context, r request) error {
	of := r.of
	if l.transport.aggregated() {
		of = nil
	}
	stream, node := l.streams[of], (*corev3.Node)(nil)
	if stream == nil {
		var err error
		stream, err = l.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, l.transport.method(r.of))
		if err != nil {
			l.failed <- failure(of, err)
			return err
		}
		l.streams[of], node = stream, l.node
		go crash.Guard(func() { l.receive(ctx, of, stream) }, func(e *crash.Error) { l.failed <- e })()
	}
	if m := l.codec.request(r, node); m != nil {
		return stream.SendMsg(m) // receive gets the reason of an error
	}
	return nil
}

// receive sends the responses of a stream to received, until the stream or ctx ends.
func (l *link) receive(ctx context.Context, of *xds.Type, stream grpc.ClientStream) {
	for {
		m := l.codec.message()
		err := stream.RecvMsg(m)
		var r response
		if err == nil {
			r, err = l.codec.response(m)
		}
		if err == nil && of != nil && r.url != of.URL() {
			err = nobodyAsked(r.url)
		}
		if err != nil {
			l.failed <- failure(of, err)
			return
		}
		select {
		case l.received <- r:
		case <-ctx.Done():
			return
		}
	}
}

// nobodyAsked returns the error of a response of another type.
func nobodyAsked(url string) error {
	return fmt.Errorf("the server sends the type %q, which nobody asked for", diag.Clip(url, diag.MaxWord))
}

// failure returns why the stream of a type has ended; the type is nil for the stream of all types.
func failure(of *xds.Type, err error) error {
	switch is, ok := status.FromError(err); {
	case errors.Is(err, io.EOF):
		err = errors.New("the server has ended the stream")
	case ok:
		err = fmt.Errorf("%s: %s", is.Code(), diag.Clip(is.Message(), diag.MaxText))
	}
	if of != nil {
		return fmt.Errorf("%s: %w", of.API, err)
	}
	return err
}
