package transition

import (
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

// listening is a listener that has sockets.
type listening struct {
	*xds.Resource
	config *listenerv3.Listener
	// addresses are all addresses, the main address first. keys are the keys of addresses, sorted.
	addresses []address
	keys      []string
	// ports are the sockets of addresses without pipes. An address :: that accepts IPv4 adds a second socket,
	// 0.0.0.0.
	ports []xds.Socket
}

// address is an address of a listener. path is the path of its field.
type address struct {
	*corev3.Address
	path xds.Path
}

// listeningByName returns the listeners that have sockets, by name. It leaves out internal listeners and listeners
// with an api_listener: from a file, Envoy makes no listener of the latter.
func listeningByName(list []*xds.Resource) map[string]*listening {
	byName := make(map[string]*listening, len(list))
	for _, r := range list {
		l := r.Message().(*listenerv3.Listener)
		if l.GetInternalListener() != nil || l.GetApiListener() != nil || l.GetAddress() == nil || byName[r.Name] != nil {
			continue
		}
		n := &listening{Resource: r, config: l, addresses: []address{{l.GetAddress(), "address"}}}
		for i, a := range l.GetAdditionalAddresses() {
			n.addresses = append(n.addresses, address{a.GetAddress(), xds.Path("additional_addresses").Index(i).Field("address")})
		}
		n.keys, n.ports = addressKeys(n.addresses), portsOf(n.addresses)
		byName[r.Name] = n
	}
	return byName
}

// byPort maps the wildcard address of a port to the listeners with the port. Listeners without a common key don't
// overlap. Each list is sorted by name.
type byPort map[xds.Socket][]*listening

func (p byPort) add(l *listening) {
	for _, port := range l.ports {
		all, _ := port.Wildcard()
		p[all] = append(p[all], l)
	}
}

// first returns the listener that has a port in common with l and for which fits returns true; nil if no listener
// has both. Of several listeners, it returns the first by name.
func (p byPort) first(l *listening, fits func(*listening) bool) *listening {
	var first *listening
	for _, port := range l.ports {
		all, _ := port.Wildcard()
		if i := slices.IndexFunc(p[all], fits); i >= 0 && (first == nil || p[all][i].Name < first.Name) {
			first = p[all][i]
		}
	}
	return first
}

// sockets holds what the rules about sockets know of a change.
type sockets struct {
	old, new map[string]*listening
	// waits and swaps are the results of Moves.
	waits map[string]int
	swaps [][]string
	// gone maps the joined keys of all addresses to the listeners with these addresses that the new Snapshot lacks.
	// Each list is sorted by name.
	gone map[string][]*listening
	// leave holds the listeners that the new Snapshot lacks, ran the published listeners that it has.
	leave, ran byPort
	// listeners are the new listeners, by name.
	listeners []*listening
}

// notAboutSockets are the fields of a listener that no rule about sockets looks at.
var notAboutSockets = map[protoreflect.Name]bool{
	"filter_chains": true, "default_filter_chain": true, "listener_filters": true,
	"access_log": true, "stat_prefix": true, "metadata": true, "per_connection_buffer_limit_bytes": true,
}

// KeepsSockets reports whether two versions of a listener are equal in all fields that rules about sockets look at.
func KeepsSockets(was, is *xds.Resource) bool {
	a, b := was.Message().ProtoReflect(), is.Message().ProtoReflect()
	fields := a.Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); !notAboutSockets[f.Name()] && (a.Has(f) != b.Has(f) || !a.Get(f).Equal(b.Get(f))) {
			return false
		}
	}
	return true
}

// socketsOf returns the sockets of a Pass. All rules of the Pass share them. An error is an error of Pass.Old.
func socketsOf(p *Pass) (*sockets, error) {
	if p.sockets == nil {
		s, err := newSockets(p)
		if err != nil {
			return nil, err
		}
		p.sockets = s
	}
	return p.sockets, nil
}

func newSockets(p *Pass) (*sockets, error) {
	published, err := p.Old.Of(xds.Listener)
	if err != nil {
		return nil, err
	}
	waits, swaps := Moves(published, p.New.Of(xds.Listener))
	s := &sockets{
		old: listeningByName(published), new: listeningByName(p.New.Of(xds.Listener)),
		waits: waits, swaps: swaps,
		gone: make(map[string][]*listening), leave: make(byPort), ran: make(byPort),
	}
	for _, name := range slices.Sorted(maps.Keys(s.old)) {
		o := s.old[name]
		if s.new[name] != nil {
			s.ran.add(o)
			continue
		}
		s.leave.add(o)
		at := strings.Join(o.keys, "\n")
		s.gone[at] = append(s.gone[at], o)
	}
	for _, name := range slices.Sorted(maps.Keys(s.new)) {
		s.listeners = append(s.listeners, s.new[name])
	}
	return s, nil
}

// keeps returns the published listener whose sockets Envoy hands over to l: the listener of the same name, or a
// listener that the same update removes and that has the same addresses and socket options. keeps returns nil if l
// gets new sockets, or if reuse-port-changed reports l.
func (s *sockets) keeps(l *listening) *listening {
	if o := s.old[l.Name]; o != nil {
		switch {
		case o.reusesPort() != l.reusesPort():
			return nil
		case o.compatible(l):
			return o
		}
	}
	for _, g := range s.gone[strings.Join(l.keys, "\n")] {
		// A listener with bind_to_port: false has no open socket.
		if g.bound() && g.compatible(l) {
			return g
		}
	}
	return nil
}

// reusesPort reports whether the listener sets SO_REUSEPORT. This is the default.
func (l *listening) reusesPort() bool {
	return l.config.GetEnableReusePort() == nil || l.config.GetEnableReusePort().GetValue()
}

// bound reports whether the listener opens sockets, which bind_to_port decides.
func (l *listening) bound() bool {
	return l.config.GetBindToPort() == nil || l.config.GetBindToPort().GetValue()
}

func (l *listening) isUDP() bool {
	return l.config.GetAddress().GetSocketAddress().GetProtocol() == corev3.SocketAddress_UDP
}

// compatible reports whether Envoy hands over the sockets of one listener to the other. Envoy compares the kind of
// socket, the addresses in any order, and the socket options. It does not compare bind_to_port, enable_mptcp,
// ipv4_compat and the mode of a pipe.
func (l *listening) compatible(o *listening) bool {
	return l.isUDP() == o.isUDP() && slices.Equal(l.keys, o.keys) && sameOptions(l.config, o.config)
}

func addressKeys(addresses []address) []string {
	keys := make([]string, len(addresses))
	for i, a := range addresses {
		keys[i] = a.key()
	}
	slices.Sort(keys)
	return keys
}

// key returns the parts of an address that Envoy compares, as a text.
func (a address) key() string {
	if s, ok := xds.SocketOf(a.Address); ok {
		return s.String() + " " + a.GetSocketAddress().GetNetworkNamespaceFilepath()
	}
	return a.GetSocketAddress().GetAddress() + " on any port"
}

func sameOptions(a, b *listenerv3.Listener) bool {
	return a.GetTransparent().GetValue() == b.GetTransparent().GetValue() &&
		a.GetFreebind().GetValue() == b.GetFreebind().GetValue() &&
		a.GetTcpFastOpenQueueLength().GetValue() == b.GetTcpFastOpenQueueLength().GetValue() &&
		proto.Equal(a.GetTcpKeepalive(), b.GetTcpKeepalive()) &&
		slices.EqualFunc(a.GetSocketOptions(), b.GetSocketOptions(), sameOption) &&
		slices.EqualFunc(a.GetAdditionalAddresses(), b.GetAdditionalAddresses(), func(a, b *listenerv3.AdditionalAddress) bool {
			own, other := a.GetSocketOptions(), b.GetSocketOptions()
			return (own == nil) == (other == nil) && proto.Equal(a.GetTcpKeepalive(), b.GetTcpKeepalive()) &&
				slices.EqualFunc(own.GetSocketOptions(), other.GetSocketOptions(), sameOption)
		})
}

func sameOption(a, b *corev3.SocketOption) bool { return proto.Equal(a, b) }

// shares reports whether two listeners have an address in common. Envoy compares only whole addresses, and compares
// no TCP listener with a UDP listener.
func (l *listening) shares(o *listening) bool {
	return l.isUDP() == o.isUDP() && slices.ContainsFunc(l.addresses, func(a address) bool {
		_, ok := xds.SocketOf(a.Address)
		return ok && slices.Contains(o.keys, a.key())
	})
}

// overlaps reports whether the kernel refuses to bind one of both listeners unless both set SO_REUSEPORT. Pipes
// never overlap, because Envoy unlinks an existing pipe.
func (l *listening) overlaps(o *listening) bool {
	return l.bound() && o.bound() && slices.ContainsFunc(l.ports, func(a xds.Socket) bool {
		return slices.ContainsFunc(o.ports, func(b xds.Socket) bool {
			allOfA, _ := a.Wildcard()
			allOfB, _ := b.Wildcard()
			return a == b || a == allOfB || b == allOfA
		})
	})
}

func portsOf(addresses []address) []xds.Socket {
	var list []xds.Socket
	for _, a := range addresses {
		s, ok := xds.SocketOf(a.Address)
		all, isPort := s.Wildcard()
		if !ok || !isPort {
			continue
		}
		list = append(list, s)
		if a.GetSocketAddress().GetIpv4Compat() && s == all {
			four := proto.CloneOf(a.GetSocketAddress())
			four.Address = "0.0.0.0"
			s, _ := xds.SocketOf(&corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: four}})
			list = append(list, s)
		}
	}
	return list
}
