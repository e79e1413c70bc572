// Package admit judges the requests of clients before anything is made of them: who may be which
// node, who may ask for secrets, and how much a client may ask for.
//
//	judge := admit.New(admit.Options{Nodes: rules})
//	stream := judge.Stream(client)
//	err := stream.Ask(admit.Request{Node: q.GetNode(), TypeURL: q.GetTypeUrl(), Names: q.GetResourceNames()})
//
// An error has the status of gRPC that the client is to get. It ends the stream.
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

// Options say what clients may do.
type Options struct {
	// Nodes are the nodes that clients with a certificate may be; empty lets all be any. A client
	// of a Unix socket may be any: the mode of the socket says who may connect.
	Nodes []NodeRule
	// Default are the dynamic parameters of clients that send none, NodeParameters those by their nodes, and
	// Params who may have which; one without a rule may be any.
	Default        params.Parameters
	NodeParameters []NodeParameter
	Params         []ParamRule
	// Status are the names in certificates whose clients may ask what all clients run.
	Status []NamePattern
	// Names is how many names a stream may ask for, beside as many as there are resources;
	// 0 means 10,000. NameLength is how long each may be, in bytes; 0 means 4096.
	Names, NameLength int
	// Certificates means that a client of TLS needs a certificate for what is served.
	Certificates bool
	// Resources returns how many resources there are; nil means none.
	Resources func() int
	// Log gets the log lines; nil discards them.
	Log *event.Log
}

// Judge judges what clients ask. It may be used from any goroutine.
type Judge struct {
	options Options

	mu     sync.Mutex
	logged map[refusal]time.Time // when a refusal was
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

// Client is whoever has connected.
type Client struct {
	// Address is from where, empty for a Unix socket.
	Address string
	// Local means that it came by a Unix socket, Loopback that it came to a loopback address. TLS means that it came by TLS, Certificate is
	// the one that it has shown; nil for none.
	Local, Loopback, TLS bool
	Certificate          *x509.Certificate
}

// Peer returns whose memory the connections of the client hold: that of its certificate, or else of its address.
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

// Private reports whether nobody else reads what the client is sent.
func (c Client) Private() bool { return c.Local || c.TLS }

const (
	// maxTypes is how many types a stream may ask for that are unknown. A client that is newer
	// than this program knows some.
	maxTypes = 32
	// maxNode is how large the node of a client may be without its list of extensions.
	maxNode = 64 << 10
)

// Stream judges the requests of one stream. It is for one goroutine.
type Stream struct {
	judge  *Judge
	client Client

	node    *corev3.Node // of the first request; nil before
	unknown map[string]struct{}
	names   map[string]int // by type
	located atomic.Bool    // the client has sent parameters itself
}

// Stream returns a Stream of a client.
func (j *Judge) Stream(c Client) *Stream {
	return &Stream{judge: j, client: c, unknown: make(map[string]struct{}), names: make(map[string]int)}
}

// Request is what a client asks for.
type Request struct {
	Node     *corev3.Node
	TypeURL  string
	Names    []string
	Locators []*discoveryv3.ResourceLocator
}

// Ask judges a request. Of its Node, which must be there the first time only, it removes what
// nobody here asks for.
func (s *Stream) Ask(r Request) error {
	if len(r.Locators) > 0 {
		s.located.Store(true)
	}
	if s.node == nil {
		if err := s.introduce(r.Node); err != nil {
			return err
		}
	} // later ones are the same, or are ignored
	if err := s.judgeType(r.TypeURL); err != nil {
		return err
	}
	for _, name := range r.Names {
		if most := s.judge.options.NameLength; len(name) > most {
			return s.refuse(codes.InvalidArgument, "a resource name of %d bytes: %d are allowed", len(name), most)
		}
	}
	return s.locates(r.Locators)
}

// introduce judges who the client says it is.
func (s *Stream) introduce(node *corev3.Node) error {
	if node == nil {
		node = &corev3.Node{}
	}
	node.Extensions = nil // the half of what an Envoy sends
	if n := proto.Size(node); n > maxNode {
		return s.refuse(codes.InvalidArgument, "a node of %d bytes: %d are allowed", n, maxNode)
	}
	if s.judge.options.Certificates && s.client.TLS && s.client.Certificate == nil {
		return s.refuse(codes.PermissionDenied, "the client has shown no certificate")
	}
	if !s.judge.allows(s.client, node.GetId()) {
		return s.refuse(codes.PermissionDenied, "the certificate of the client does not allow it the node id %.100q", node.GetId())
	}
	if !s.located.Load() {
		of := s.judge.options.Parameters(node)
		for _, value := range of {
			if len(value) > params.MaxText {
				return s.refuse(codes.InvalidArgument, "a dynamic parameter of %d bytes, which the node says: %d are allowed", len(value), params.MaxText)
			}
		}
		if err := s.may(of); err != nil {
			return err
		}
	}
	s.node = node
	return nil
}

// allows reports whether a client may have a node id.
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

// Status judges whether a client may ask what all clients run. Who has no certificate may do so on
// this machine, unless clients need one.
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
	const words = "this client may not ask what clients run: a client of a Unix socket may, one with a certificate of --allow-status, and, without --client-ca, one on the machine of the server"
	err := status.Error(codes.PermissionDenied, words)
	j.Refused(c.Address, words, err)
	return err
}

func (s *Stream) judgeType(url string) error {
	if most := s.judge.options.NameLength; len(url) > most {
		return s.refuse(codes.InvalidArgument, "a type URL of %d bytes: %d are allowed", len(url), most)
	}
	if t := xds.TypeOfURL(url); t != nil {
		if t == xds.Secret {
			return s.Secret()
		}
		return nil
	}
	if s.unknown[url] = struct{}{}; len(s.unknown) > maxTypes {
		return s.refuse(codes.ResourceExhausted, "more than %d types that are unknown here", maxTypes)
	}
	return nil
}

// Secret judges whether the client may be sent what holds a secret, be it in a resource of
// another type. It may be called from any goroutine.
func (s *Stream) Secret() error {
	if s.client.Private() {
		return nil
	}
	return s.refuse(codes.PermissionDenied, "secrets are sent by TLS or a Unix socket only")
}

// Count judges that the client asks for so many names of a type by now.
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
		return s.refuse(codes.ResourceExhausted, "%d names on one stream: %d are allowed", all, most)
	}
	return nil
}

func (s *Stream) refuse(code codes.Code, format string, args ...any) error {
	err := status.Errorf(code, format, args...)
	s.judge.Refused(s.client.Address, format, err)
	return err
}

// refusal is a kind of refusal, and whom it met.
type refusal struct{ host, kind string }

const (
	// logAgain is how long ago a refusal was when it is logged again: a client that is refused
	// comes back, often every second.
	logAgain = 10 * time.Minute
	// maxLogged is how many refusals are remembered for that.
	maxLogged = 1000
)

// Refused logs that a client was refused, once in a while for each host and kind.
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

// IsLoopback reports whether an address of this machine is one that no other machine reaches.
func IsLoopback(local net.Addr) bool {
	a, ok := local.(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

// OfHTTP returns the client of an HTTP request.
func OfHTTP(r *http.Request) Client {
	c := Client{Address: r.RemoteAddr}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && local.Network() == "unix" {
		return Client{Local: true}
	}
	if r.TLS != nil {
		c.TLS = true
		if len(r.TLS.PeerCertificates) > 0 {
			c.Certificate = r.TLS.PeerCertificates[0]
		}
	}
	return c
}
