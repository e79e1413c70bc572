package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"xdspub/diag"
	"xdspub/internal/grpcdial"
	"xdspub/internal/safefile"
)

// Options say how to connect to a store.
type Options struct {
	Address Address
	// CA is a file with CA certificates for the servers; without it, the system has the CA certificates. Cert and Key
	// are files with the certificate of this client. With a CA or a Cert, the connection has TLS.
	CA, Cert, Key string
	// User is a user of the etcd; empty for no user. Password is the file with the password.
	User, Password string
	// AgeKeys is a file with age identities of this machine and recipients of other machines. The writer encrypts
	// changes for all of them. Without AgeKeys, the writer encrypts nothing.
	AgeKeys string
}

// tls reports whether connections have TLS.
func (o Options) tls() bool { return o.CA != "" || o.Cert != "" }

// Check returns an error if an option lacks its partner, or if other machines can read a connection.
func (o Options) Check() error {
	switch {
	case (o.Cert == "") != (o.Key == ""):
		return errors.New("--store-cert and --store-key belong together: give both")
	case (o.User == "") != (o.Password == ""):
		return errors.New("--store-user and --store-password belong together: give both")
	case !o.tls() && !o.Address.local():
		return fmt.Errorf("others can read a connection to %s, which may carry secrets: set --store-ca, so that the connection has TLS", o.Address)
	}
	return nil
}

const (
	// requestTime is how long a request may take.
	requestTime = 5 * time.Second
	// dialTime is how long a connection may take. A connection without an answer for pingEvery and pingTime is closed.
	dialTime  = 3 * time.Second
	pingEvery = 10 * time.Second
	pingTime  = 5 * time.Second
	// chunkSize bounds the bytes of a value. A server takes requests of 1.5 MB.
	chunkSize = 1 << 20
	// maxAnswer bounds an answer of a server.
	maxAnswer = 4 << 20
	// pageSize is the number of keys that a request asks for.
	pageSize = 1000
	// maxPages bounds the number of requests for the keys below a prefix.
	maxPages = 1000
	// maxFile bounds a file with a password.
	maxFile = 1 << 20
)

// client is a connection to a store.
type client struct {
	etcd    *clientv3.Client
	address Address
	dialers map[string]*grpcdial.Dialer // by server
}

// connect returns a client. Only a client with a user asks a server now. Close the client after use.
func connect(ctx context.Context, o Options) (*client, error) {
	c := &client{address: o.Address, dialers: make(map[string]*grpcdial.Dialer)}
	var files *grpcdial.Files
	if o.tls() {
		files = &grpcdial.Files{CA: o.CA, Cert: o.Cert, Key: o.Key, FixedName: true}
	}
	var err error
	for _, server := range o.Address.Endpoints {
		if c.dialers[server], err = grpcdial.New(server, "--store", files); err != nil {
			return nil, err
		}
	}
	config := clientv3.Config{
		Context: ctx, Endpoints: o.Address.Endpoints, Logger: zap.NewNop(), DialTimeout: dialTime,
		DialKeepAliveTime: pingEvery, DialKeepAliveTimeout: pingTime, MaxCallRecvMsgSize: maxAnswer,
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, server string) (net.Conn, error) {
			return c.dialers[server].Dial(ctx) // the library's own TLS would hide why a connection fails
		})},
	}
	if config.Username = o.User; o.User != "" {
		password, err := safefile.Read(o.Password, maxFile)
		if err != nil {
			return nil, err
		}
		config.Password = string(bytes.TrimRight(password, "\r\n"))
	}
	if c.etcd, err = clientv3.New(config); err != nil {
		return nil, c.explained(err)
	}
	return c, nil
}

func (c *client) close() { _ = c.etcd.Close() }

// waitLost waits until no server is connected, or ctx ends. The library's watch would try again in silence.
func (c *client) waitLost(ctx context.Context) {
	conn := c.etcd.ActiveConnection()
	for is := conn.GetState(); is == connectivity.Ready && conn.WaitForStateChange(ctx, is); {
		is = conn.GetState()
	}
}

// get returns the value of a key, nil for none, and the revision of the store.
func (c *client) get(ctx context.Context, key string) (kv *mvccpb.KeyValue, revision int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	r, err := c.etcd.Get(ctx, key)
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", key, err)
	}
	if len(r.Kvs) > 0 {
		kv = r.Kvs[0]
	}
	return kv, r.Header.Revision, nil
}

// each calls visit for each key k with from <= k < to, in order.
func (c *client) each(ctx context.Context, from, to string, visit func(*mvccpb.KeyValue) error, options ...clientv3.OpOption) error {
	limit := int64(pageSize)
	for range maxPages {
		r, err := c.page(ctx, from, append(options, clientv3.WithRange(to), clientv3.WithLimit(limit)))
		if status.Code(rootOf(err)) == codes.ResourceExhausted && limit > 1 { // the answer is larger than maxAnswer
			limit /= 10
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s…: %w", from, err)
		}
		for _, kv := range r.Kvs {
			if err := visit(kv); err != nil {
				return err
			}
		}
		if !r.More || len(r.Kvs) == 0 {
			return nil
		}
		from = string(r.Kvs[len(r.Kvs)-1].Key) + "\x00"
	}
	return &ForeignError{from, fmt.Sprintf("the keys before it need more than %d requests", maxPages)}
}

func (c *client) page(ctx context.Context, from string, options []clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	return c.etcd.Get(ctx, from, options...)
}

// below calls visit for the keys that begin with a prefix.
func (c *client) below(ctx context.Context, prefix string, visit func(*mvccpb.KeyValue) error, options ...clientv3.OpOption) error {
	return c.each(ctx, prefix, clientv3.GetPrefixRangeEnd(prefix), visit, options...)
}

// commit executes operations if all conditions hold.
func (c *client) commit(ctx context.Context, conditions []clientv3.Cmp, then ...clientv3.Op) (done bool, revision int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	r, err := c.etcd.Txn(ctx).If(conditions...).Then(then...).Commit()
	if err != nil {
		return false, 0, err
	}
	return r.Succeeded, r.Header.Revision, nil
}

// explained returns an error of the library in words that name the remedy.
func (c *client) explained(err error) error {
	if err == nil {
		return nil
	}
	is := func(known error) bool { return errors.Is(rpctypes.Error(rootOf(err)), known) }
	why := ""
	switch {
	case is(rpctypes.ErrNoSpace):
		why = "the etcd is full (NOSPACE): compact and defragment the etcd, raise its quota, and run etcdctl alarm disarm"
	case is(rpctypes.ErrPermissionDenied):
		why = "the user may not do this: grant the user a role with the key"
	case is(rpctypes.ErrAuthFailed):
		why = "the etcd does not know the user, or the password is wrong: correct --store-user or --store-password"
	case is(rpctypes.ErrUserEmpty), is(rpctypes.ErrInvalidAuthToken):
		why = "the etcd requires a user: set --store-user and --store-password, or --store-cert"
	case errors.Is(err, context.DeadlineExceeded), status.Code(rootOf(err)) == codes.Unavailable, status.Code(rootOf(err)) == codes.DeadlineExceeded:
		why = "no server answers: " + c.unreachable()
	default:
		return err
	}
	return fmt.Errorf("%s (%w)", why, err)
}

// maxUnreachable bounds the number of servers in the text of unreachable.
const maxUnreachable = 5

// unreachable returns why no connection to a server works; or, if no reason is known, what the operator can look for.
func (c *client) unreachable() string {
	var reasons []string
	for _, server := range c.address.Endpoints {
		reason := c.dialers[server].Reason()
		if op, ok := errors.AsType[*net.OpError](reason); ok { // its text repeats the address
			reason = op.Err
		}
		if reason != nil {
			reasons = append(reasons, diag.ClipLine(server+": "+reason.Error(), maxWords))
		}
	}
	if len(reasons) == 0 {
		return "see whether the etcd has a leader, and whether this machine reaches " + diag.Few(c.address.Endpoints, maxUnreachable)
	}
	return diag.Few(reasons, maxUnreachable)
}

// isForbidden reports whether the user may not read a key.
func isForbidden(err error) bool {
	return errors.Is(rpctypes.Error(rootOf(err)), rpctypes.ErrPermissionDenied)
}

// rootOf unwraps an error to the innermost error.
func rootOf(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
