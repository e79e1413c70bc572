package csds

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"xdspub/diag"
	"xdspub/serve/memory"
	"xdspub/xds/clients"
)

// maxAnswer is the largest answer in bytes, above the answer for 10,000 clients. maxDecoded is the largest
// memory for a decoded answer, in bytes.
const (
	maxAnswer  = 256 << 20
	maxDecoded = 1 << 30
)

// boundedCodec rejects a message before decoding if the decoded message would take more than maxDecoded
// bytes.
type boundedCodec struct{ encoding.CodecV2 }

func (c boundedCodec) Unmarshal(data mem.BufferSlice, v any) error {
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	m := v.(proto.Message)
	if held := memory.Decoded(buffer.ReadOnlyData(), m.ProtoReflect().Descriptor()); held > maxDecoded {
		return fmt.Errorf("the answer of the server would take %d MiB of memory, and %d MiB are allowed", held>>20, maxDecoded>>20)
	}
	return proto.Unmarshal(buffer.ReadOnlyData(), m)
}

// Ask asks an xdspub serve for its own state and for its clients. The address is HOST:PORT or unix:PATH. Ask
// uses TLS with the files, or no TLS if files is nil. Without a deadline of ctx, Ask may wait for ever.
func Ask(ctx context.Context, address string, files *Files) (*Answer, error) {
	answer, err := ask(ctx, address, files)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", address, err)
	}
	return answer, nil
}

func ask(ctx context.Context, address string, files *Files) (*Answer, error) {
	d := &dialer{address: address, files: files}
	if files != nil {
		var err error
		if d.tls, err = files.config(address); err != nil {
			return nil, err
		}
	}
	// The library's own connection timeout is 20s, and its error says less than the error of ctx.
	patient := grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: time.Hour})
	ctx, cancel := context.WithCancel(ctx)
	dial := grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return d.dial(ctx) })
	conn, err := grpc.NewClient("passthrough:///"+address, patient, grpc.WithAuthority("xdspub"), dial,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer), grpc.ForceCodecV2(boundedCodec{encoding.GetCodecV2("proto")})))
	if err != nil {
		cancel()
		return nil, err
	}
	defer conn.Close()
	defer cancel() // before conn.Close, which would wait 5s for a server that doesn't read
	answer, err := statusv3.NewClientStatusDiscoveryServiceClient(conn).FetchClientStatus(ctx, &statusv3.ClientStatusRequest{})
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the server has not answered: %w", ctx.Err())
	case status.Code(err) == codes.DeadlineExceeded: // the library may report the deadline first
		return nil, fmt.Errorf("the server has not answered: %w", context.DeadlineExceeded)
	case err != nil && d.reason() != nil:
		return nil, d.reason()
	case err != nil:
		return nil, errors.New(diag.Clip(status.Convert(err).Message(), diag.MaxText))
	}
	says, own := &Answer{Clients: []clients.Client{}}, false
	for _, config := range answer.GetConfig() {
		if text := config.GetNode().GetMetadata().GetFields()[serverKey].GetStringValue(); text != "" {
			if err := json.Unmarshal([]byte(text), &says.Server); err != nil {
				return nil, err
			}
			own = true
			continue
		}
		c, err := clientOf(config)
		if err != nil {
			return nil, err
		}
		says.Clients = append(says.Clients, c)
	}
	if !own {
		return nil, errors.New("the answer does not describe the server: the server is not xdspub serve, or an older version")
	}
	return says, nil
}

// dialer connects to a server. dialer does TLS itself, because the library would return TLS errors as text
// only.
type dialer struct {
	address string
	files   *Files
	tls     *tls.Config // nil for no TLS

	mu  sync.Mutex
	err error // the first error
}

// reason returns the first error of a connection; nil for none.
func (d *dialer) reason() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// failed records an error for reason, and returns the error.
func (d *dialer) failed(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil && d.err == nil {
		d.err = err
	}
	return err
}

// dial returns a connection, and closes the connection when ctx ends.
func (d *dialer) dial(ctx context.Context) (net.Conn, error) {
	network, name := "tcp", d.address
	if path, ok := strings.CutPrefix(d.address, "unix:"); ok {
		network, name = "unix", path
	}
	plain, err := new(net.Dialer).DialContext(ctx, network, name)
	if err != nil {
		return nil, d.failed(err)
	}
	context.AfterFunc(ctx, func() { plain.Close() })
	if d.tls == nil {
		return &plainConn{plain, d}, nil
	}
	secured, err := d.secure(ctx, plain)
	if err != nil {
		plain.Close()
		return nil, d.failed(d.files.explain(err))
	}
	return secured, nil
}

// secure adds TLS to a connection. With TLS 1.3 the server judges the client's certificate after the
// handshake. secure waits for the server's first byte, which shows that the server accepts the certificate.
func (d *dialer) secure(ctx context.Context, plain net.Conn) (net.Conn, error) {
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
	dialer *dialer
}

// Read reads from the connection. At EOF, Read records an error that mentions TLS, because a server with TLS
// closes a connection without TLS.
func (c *plainConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		_ = c.dialer.failed(errors.New("the server closed the connection; if it serves by TLS, give --tls-ca"))
	}
	return n, err
}
