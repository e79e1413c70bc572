// Package grpcdial connects to gRPC servers, by TLS or without, and explains why a connection fails.
//
//	d, err := grpcdial.New("127.0.0.1:18000", "--tls", nil)
//	conn, err := d.Connect(ctx, 64<<20)
package grpcdial

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"xdspub/internal/decoded"
)

// MaxDecoded is the largest memory for a decoded message, in bytes.
const MaxDecoded = 1 << 30

// boundedCodec rejects a message before decoding if the decoded message would take more than MaxDecoded
// bytes.
type boundedCodec struct{ encoding.CodecV2 }

func (c boundedCodec) Unmarshal(data mem.BufferSlice, v any) error {
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	m := v.(proto.Message)
	if held := decoded.Size(buffer.ReadOnlyData(), m.ProtoReflect().Descriptor()); held > MaxDecoded {
		return fmt.Errorf("the answer of the server would take %d MiB of memory, and %d MiB are allowed", held>>20, MaxDecoded>>20)
	}
	return proto.Unmarshal(buffer.ReadOnlyData(), m)
}

// Dialer connects to a server. Dialer does TLS itself, because the library would return TLS errors as text
// only.
type Dialer struct {
	address string
	options string
	files   *Files
	tls     *tls.Config // nil for no TLS

	mu  sync.Mutex
	err error // the error of the last connection; nil if the connection works
}

// New returns a Dialer for an address HOST:PORT or unix:PATH. The Dialer uses TLS with the files, or no TLS if files
// is nil. options is the beginning of the names of the options for TLS, such as --tls, which errors name.
func New(address, options string, files *Files) (*Dialer, error) {
	d := &Dialer{address: address, options: options, files: files}
	if files != nil {
		var err error
		if d.tls, err = files.config(address); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Connect returns a connection that lasts until ctx ends. most is the largest message of the server, in bytes. The
// caller closes the connection after the end of ctx: otherwise Close would wait 5s for a server that doesn't read.
func (d *Dialer) Connect(ctx context.Context, most int) (*grpc.ClientConn, error) {
	// The library's own connection timeout is 20s, and its error says less than the error of ctx.
	patient := grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: time.Hour})
	dial := grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
		conn, _, err := d.dial(ctx)
		return conn, err
	})
	return grpc.NewClient("passthrough:///"+d.address, patient, grpc.WithAuthority("xdspub"), dial,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(most), grpc.ForceCodecV2(boundedCodec{encoding.GetCodecV2("proto")})))
}

// Dial returns a connection. The connection stays open after the end of ctx.
func (d *Dialer) Dial(ctx context.Context) (net.Conn, error) {
	conn, detach, err := d.dial(ctx)
	if err == nil && !detach() {
		return nil, context.Cause(ctx)
	}
	return conn, err
}

// Reason returns the error of the last connection; nil if the connection works, and before the first connection.
func (d *Dialer) Reason() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// record keeps the error of a connection for Reason, and returns the error. A nil error means that the connection
// works.
func (d *Dialer) record(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
	return err
}

// dialer finds within 30 s that a peer is gone.
var dialer = net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}

// dial returns a connection, and closes the connection when ctx ends. After a call of detach, the connection stays
// open; detach returns false if ctx has ended before.
func (d *Dialer) dial(ctx context.Context) (conn net.Conn, detach func() bool, err error) {
	network, name := "tcp", d.address
	if path, ok := strings.CutPrefix(d.address, "unix:"); ok {
		network, name = "unix", path
	}
	plain, err := dialer.DialContext(ctx, network, name)
	if err != nil {
		return nil, nil, d.record(err)
	}
	detach = context.AfterFunc(ctx, func() { plain.Close() })
	if d.tls == nil {
		return &plainConn{plain, d}, detach, nil
	}
	secured, err := d.secure(ctx, plain)
	if err != nil {
		plain.Close()
		return nil, nil, d.record(d.files.explain(d.options, err))
	}
	_ = d.record(nil)
	return secured, detach, nil
}

// secure adds TLS to a connection. With TLS 1.3 the server judges the client's certificate after the
// handshake. secure waits for the server's first byte, which shows that the server accepts the certificate.
func (d *Dialer) secure(ctx context.Context, plain net.Conn) (net.Conn, error) {
	secured := tls.Client(plain, d.tls)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(secured)
	if _, err := reader.Peek(1); err != nil {
		return nil, err
	}
	return &readConn{secured, reader}, nil
}

// readConn is a connection with a reader that may have buffered bytes.
type readConn struct {
	net.Conn
	reader *bufio.Reader
}

// Read reads the buffered bytes, and then the connection.
func (c *readConn) Read(p []byte) (int, error) { return c.reader.Read(p) }

// plainConn is a connection without TLS.
type plainConn struct {
	net.Conn
	dialer *Dialer
}

// Read reads from the connection. At EOF, Read records an error that mentions TLS, because a server with TLS
// closes a connection without TLS.
func (c *plainConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		_ = c.dialer.record(nil)
	}
	if errors.Is(err, io.EOF) {
		_ = c.dialer.record(fmt.Errorf("the server closed the connection; if it serves by TLS, give %s-ca", c.dialer.options))
	}
	return n, err
}
