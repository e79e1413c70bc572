// Package admit judges the requests of clients before the server acts on them: which node a client may be,
// who may request secrets, and how much a client may request.
//
//	judge := admit.New(admit.Options{Nodes: rules})
//	stream := judge.Stream(client)
//	err := stream.Ask(admit.Request{Node: q.GetNode(), TypeURL: q.GetTypeUrl(), Names: q.GetResourceNames()})
//
// An error carries the gRPC status for the client, and ends the stream.
package admit

import (
	"crypto/sha256"
	"crypto/x509"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"xdspub/event"
	"xdspub/serve/memory"
	"xdspub/xds"
	"xdspub/xds/params"
)

// Options configure what clients may do.
type Options struct {
	// Nodes lists the node ids that a client may use, by the client's certificate. Empty permits any node id.
	// A client of a Unix socket may use any node id: the mode of the socket restricts who may connect.
	Nodes []NodeRule
	// Default are the dynamic parameters of a client that sends none. NodeParameters derive parameters from
	// the node of such a client, and override Default. Params restricts the parameters of clients; a
	// parameter without a rule may have any value.
	Default        params.Parameters
	NodeParameters []NodeParameter
	Params         []ParamRule
	// Status lists names in certificates; a client with such a name may request the status of all clients.
	Status []NamePattern
	// AggregateBy are the node fields of --aggregate-by. Clients with other values get other resources.
	AggregateBy []NodeField
	// Names is the largest number of names on a stream, in addition to the number of resources; 0 means
	// 10,000. NameLength is the largest length of a name or a type URL in bytes; 0 means 4096.
	Names, NameLength int
	// Certificates requires a certificate from TLS clients that request resources.
	Certificates bool
	// Resources returns the number of published resources; nil means 0 resources.
	Resources func() int
	// Log receives the log lines; nil discards them.
	Log *event.Log
}

// Judge judges requests. Judge is safe for concurrent use.
type Judge struct {
	options Options

	mu     sync.Mutex
	logged map[refusal]time.Time // time of the last log line
}

// New returns a Judge.
func New(o Options) *Judge {
	if o.Names == 0 {
		o.Names = 10_000
	}
	if o.NameLength == 0 {
		o.NameLength = 4096
	}
	if o.Resources == nil {
		o.Resources = func() int { return 0 }
	}
	return &Judge{options: o, logged: make(map[refusal]time.Time)}
}

// Client describes a connected client.
type Client struct {
	// Address is the client's HOST:PORT; empty for a Unix socket.
	Address string
	// Local marks a client of a Unix socket, Loopback a connection to a loopback address, TLS a connection
	// with TLS. Certificate is the client's certificate; nil if the client presented none.
	Local, Loopback, TLS bool
	Certificate          *x509.Certificate
}

// Peer returns the kind and the name of the client in a memory.Budget. The name is the hash of the client's
// certificate, or else derives from the address. Clients of Unix sockets share a name.
func (c Client) Peer() (memory.Kind, string) {
	switch {
	case c.Local:
		return memory.Local()
	case c.Certificate != nil:
		sum := sha256.Sum256(c.Certificate.Raw)
		return memory.Known, string(sum[:])
	}
	return memory.Stranger(c.Address)
}

// Private reports whether nobody else can read the responses to the client: they go over a Unix socket or
// TLS.
func (c Client) Private() bool { return c.Local || c.TLS }

const (
	// maxTypes is the largest number of unknown types on a stream. A client newer than this program may
	// request types that this program doesn't know.
	maxTypes = 32
	// maxNode is the largest size of a client's node in bytes, without its list of extensions.
	maxNode = 64 << 10
)

// Stream judges the requests of one stream. Only Secret and SecretOf are safe for concurrent use.
type Stream struct {
	judge  *Judge
	client Client

	node    *corev3.Node        // of the first request; nil before
	unknown map[string]struct{} // unknown types in requests
	names   map[string]int      // numbers of names by type
	located atomic.Bool         // the client has sent resource locators
}

// Stream returns a Stream of a client.
func (j *Judge) Stream(c Client) *Stream {
	return &Stream{judge: j, client: c, unknown: make(map[string]struct{}), names: make(map[string]int)}
}

// Request holds the parts of a client's request that Ask judges.
type Request struct {
	Node     *corev3.Node
	TypeURL  string
	Names    []string
	Locators []*discoveryv3.ResourceLocator
}

// Ask judges a request. Ask uses the Node of the first request only, and removes the list of extensions from
// this Node.
func (s *Stream) Ask(r Request) error {
	if len(r.Locators) > 0 {
		s.located.Store(true)
	}
	if s.node == nil {
		if err := s.introduce(r.Node); err != nil {
			return err
		}
	} // later nodes are ignored
	if err := s.judgeType(r.TypeURL); err != nil {
		return err
	}
	for _, name := range r.Names {
		if most := s.judge.options.NameLength; len(name) > most {
			return s.refuse(codes.InvalidArgument, "a resource name of %d bytes: %d are allowed; see --limit name-bytes", len(name), most)
		}
	}
	return s.locates(r.Locators)
}

// introduce judges the node of the first request.
func (s *Stream) introduce(node *corev3.Node) error {
	if node == nil {
		node = &corev3.Node{}
	}
	node.Extensions = nil // half the size of an Envoy's request
	if n := proto.Size(node); n > maxNode {
		return s.refuse(codes.InvalidArgument, "a node of %d bytes: %d are allowed", n, maxNode)
	}
	if s.judge.options.Certificates && s.client.TLS && s.client.Certificate == nil {
		return s.refuse(codes.PermissionDenied, "the client presented no certificate, and the server needs one (--client-ca)")
	}
	if !s.judge.allows(s.client, node.GetId()) {
		return s.refuse(codes.PermissionDenied, "the certificate of the client does not allow the node id %.100q: see --allow-node", node.GetId())
	}
	if !s.located.Load() {
		of := s.judge.options.Parameters(node)
		for _, value := range of {
			if len(value) > params.MaxText {
				return s.refuse(codes.InvalidArgument, "a dynamic parameter of %d bytes in the node: %d are allowed", len(value), params.MaxText)
			}
		}
		if err := s.judgeParameters(of); err != nil {
			return err
		}
	}
	s.node = node
	return nil
}

// allows reports whether a client may use a node id.
func (j *Judge) allows(c Client, id string) bool {
	if len(j.options.Nodes) == 0 || c.Local {
		return true
	}
	if c.Certificate == nil {
		return false
	}
	for _, name := range names(c.Certificate) {
		for _, rule := range j.options.Nodes {
			if rule.allows(id, name) {
				return true
			}
		}
	}
	return false
}

// Status judges a request for the status of all clients. A client without a certificate may request the
// status from the same machine, unless clients need certificates.
func (j *Judge) Status(c Client) error {
	if c.Local || c.Loopback && !j.options.Certificates {
		return nil
	}
	if c.Certificate != nil {
		for _, name := range names(c.Certificate) {
			for _, p := range j.options.Status {
				if _, ok := p.pattern.match(name); ok {
					return nil
				}
			}
		}
	}
	const words = "this client may not see the status of clients: connect through a Unix socket, present a certificate of --allow-status, " +
		"or, without --client-ca, connect from the machine of the server"
	err := status.Error(codes.PermissionDenied, words)
	j.Refused(c.Address, words, err)
	return err
}

// judgeType judges the type of a request. A stream may have up to maxTypes unknown types.
func (s *Stream) judgeType(url string) error {
	if most := s.judge.options.NameLength; len(url) > most {
		return s.refuse(codes.InvalidArgument, "a type URL of %d bytes: %d are allowed; see --limit name-bytes", len(url), most)
	}
	if t := xds.TypeOfURL(url); t != nil {
		if t == xds.Secret {
			return s.Secret()
		}
		return nil
	}
	if s.unknown[url] = struct{}{}; len(s.unknown) > maxTypes {
		return s.refuse(codes.ResourceExhausted, "more than %d types that this server does not know: a newer xdspub may know them", maxTypes)
	}
	return nil
}

// Secret judges whether the client may receive secrets, including secrets inside resources of other types.
// Secret is safe for concurrent use.
func (s *Stream) Secret() error {
	if s.client.Private() {
		return nil
	}
	return s.refuse(codes.PermissionDenied, "secrets are sent only over TLS or a Unix socket")
}

// Count sets the number of names of a type on the stream, and judges the total of all types.
func (s *Stream) Count(typeURL string, names int) error {
	s.names[typeURL] = names
	all := 0
	for _, n := range s.names {
		all += n
	}
	most := s.judge.options.Names
	if all > most {
		most += s.judge.options.Resources()
	}
	if all > most {
		return s.refuse(codes.ResourceExhausted, "%d names on one stream: %d are allowed; open another stream, or see --limit names", all, most)
	}
	return nil
}

// refuse returns a gRPC status, and logs the refusal. The format is the kind of refusal.
func (s *Stream) refuse(code codes.Code, format string, args ...any) error {
	err := status.Errorf(code, format, args...)
	s.judge.Refused(s.client.Address, format, err)
	return err
}

// refusal identifies refusals that are logged together: the client's host and the kind of refusal.
type refusal struct{ host, kind string }

const (
	// logAgain is the interval after which a repeated refusal is logged again. A refused client often retries
	// every second.
	logAgain = 10 * time.Minute
	// maxLogged is the largest number of refusals in Judge.logged. A further refusal clears logged.
	maxLogged = 1000
)

// Refused logs that a client was refused, usually once per logAgain for each host and kind of refusal. err is
// the gRPC status for the client. address is empty for a Unix socket.
func (j *Judge) Refused(address, kind string, err error) {
	host, _, splitErr := net.SplitHostPort(address)
	if splitErr != nil {
		host = address
	}
	now := time.Now()
	j.mu.Lock()
	was, ok := j.logged[refusal{host, kind}]
	again := !ok || now.Sub(was) >= logAgain
	if again {
		if len(j.logged) >= maxLogged {
			clear(j.logged)
		}
		j.logged[refusal{host, kind}] = now
	}
	j.mu.Unlock()
	if again {
		j.options.Log.Write(event.ClientRefused{Client: address, Error: status.Convert(err).Message()})
	}
}

// IsLoopback reports whether an address is a TCP address of the loopback interface.
func IsLoopback(local net.Addr) bool {
	a, ok := local.(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

// OfHTTP returns the client of an HTTP request.
func OfHTTP(r *http.Request) Client {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local != nil && local.Network() == "unix" {
		return Client{Local: true}
	}
	c := Client{Address: r.RemoteAddr, Loopback: IsLoopback(local)}
	if r.TLS != nil {
		c.TLS = true
		if len(r.TLS.PeerCertificates) > 0 {
			c.Certificate = r.TLS.PeerCertificates[0]
		}
	}
	return c
}
