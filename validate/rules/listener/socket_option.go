package listener

import (
	"fmt"
	"net/netip"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var socketOption = &validate.Rule{
	Code: "socket-option",
	Doc: `A listener sets a socket option that the kernel rejects.

Envoy sets the options when it binds the socket, and rejects the listener if one fails
("Setting socket options failed"). An option of STATE_LISTENING fails later, and the listener
is gone (a warning). envoy --mode validate does not bind, and reports nothing.

This rule reports only what every Linux kernel rejects: a level that such a socket does not
have, a name far above all existing ones, a read-only name, and keepalive times above 32767
seconds or more than 127 probes.`,
	Messages: []protoreflect.FullName{"envoy.config.listener.v3.Listener"},
	Node: func(p *validate.Pass, n *xds.Node) {
		l := n.Message.(*listenerv3.Listener)
		if t := facts.TransportOf(l); t == facts.LibraryCalls || l.GetInternalListener() != nil || !bindsToPort(l) {
			return
		}
		checkSocket(p, l, ownSocket{"", l.GetAddress(), l.GetSocketOptions(), l.GetTcpKeepalive()})
		for i, a := range l.GetAdditionalAddresses() {
			// An additional address without own options has the listener's options, which were checked above.
			path := xds.Path("additional_addresses").Index(i)
			checkSocket(p, l, ownSocket{path, a.GetAddress(), a.GetSocketOptions().GetSocketOptions(), a.GetTcpKeepalive()})
		}
	},
}

// ownSocket holds the settings of a socket: those of the listener, or of the additional address at the path at.
type ownSocket struct {
	at        xds.Path
	address   *corev3.Address
	options   []*corev3.SocketOption
	keepalive *corev3.TcpKeepalive
}

func checkSocket(p *validate.Pass, l *listenerv3.Listener, own ownSocket) {
	if own.address.GetSocketAddress() == nil {
		return // Envoy sets no socket options on a pipe
	}
	if facts.TransportOf(l) == facts.Connections {
		checkKeepalive(p, own.at.Field("tcp_keepalive"), own.keepalive)
	}
	list := own.at.Field("socket_options")
	if own.at != "" {
		list = list.Field("socket_options")
	}
	s := socketOf(l, own.address.GetSocketAddress())
	for i, o := range own.options {
		if !s.gets(o) {
			continue
		}
		if fault := s.refuses(o); fault != "" {
			p.Report(validate.Finding{
				Path: list.Index(i), Warning: o.GetState() == corev3.SocketOption_STATE_LISTENING,
				Message: fmt.Sprintf("the kernel rejects socket option %d of level %d: %s", o.GetName(), o.GetLevel(), fault),
				Help:    "write level, name and value as for setsockopt on the machine where Envoy runs",
			})
		}
	}
}

func checkKeepalive(p *validate.Pass, at xds.Path, k *corev3.TcpKeepalive) {
	for _, f := range []struct {
		name  string
		value uint32
		most  uint32
	}{
		{"keepalive_probes", k.GetKeepaliveProbes().GetValue(), 127},
		{"keepalive_time", k.GetKeepaliveTime().GetValue(), 32767},
		{"keepalive_interval", k.GetKeepaliveInterval().GetValue(), 32767},
	} {
		if f.value > f.most {
			p.Report(validate.Finding{
				Path:    at.Field(f.name),
				Message: fmt.Sprintf("%s is %d, the kernel accepts at most %d", f.name, f.value, f.most),
				Help:    "write a smaller value",
			})
		}
	}
}

// kernelSocket holds the properties of a socket that decide which options the kernel accepts.
type kernelSocket struct {
	datagrams, ipv6, mptcp bool
}

func socketOf(l *listenerv3.Listener, a *corev3.SocketAddress) kernelSocket {
	ip, _ := netip.ParseAddr(a.GetAddress())
	return kernelSocket{
		datagrams: facts.TransportOf(l) != facts.Connections,
		ipv6:      ip.Is6(),
		mptcp:     l.GetEnableMptcp(),
	}
}

// Levels and names of socket options, as Linux has them on each processor.
const (
	solIP, solSocket, solTCP, solUDP, solIPv6, solMPTCP = 0, 1, 6, 17, 41, 284

	soBindToDevice                              = 25
	tcpKeepIdle, tcpKeepInterval, tcpKeepProbes = 4, 5, 6
	tcpUserTimeout                              = 18
	// highestName is above all names of options. SOL_SOCKET has names up to 84; IP and IPv6, with the names of
	// netfilter, have names below 128.
	highestName = 255
)

// readOnly are the names of SOL_SOCKET that setsockopt refuses: SO_TYPE, SO_ERROR, SO_ACCEPTCONN, SO_PROTOCOL and
// SO_DOMAIN.
var readOnly = map[int32]bool{3: true, 4: true, 30: true, 38: true, 39: true}

// gets reports whether Envoy sets an option on the socket. The type of an option may limit it to streams or
// datagrams.
func (s kernelSocket) gets(o *corev3.SocketOption) bool {
	switch {
	case o.GetType().GetStream() != nil:
		return !s.datagrams
	case o.GetType().GetDatagram() != nil:
		return s.datagrams
	default:
		return true
	}
}

// refuses returns the reason why the kernel certainly refuses an option, or "".
func (s kernelSocket) refuses(o *corev3.SocketOption) string {
	// Envoy passes level, name and value to the kernel as an int of C.
	level, name, value := int32(o.GetLevel()), int32(o.GetName()), int32(o.GetIntValue())
	switch {
	case !s.has(level):
		return "the socket has no such level"
	case name < 0 || name >= highestName || level == solSocket && readOnly[name]:
		return "no option of this name can be set"
	case level == solSocket && o.GetBufValue() != nil && name != soBindToDevice && len(o.GetBufValue()) < 4:
		return fmt.Sprintf("a value of %d bytes is too short", len(o.GetBufValue()))
	}
	if _, number := o.GetValue().(*corev3.SocketOption_IntValue); !number || level != solTCP {
		return ""
	}
	switch {
	case name == tcpUserTimeout && value < 0,
		(name == tcpKeepIdle || name == tcpKeepInterval) && (value < 1 || value > 32767),
		name == tcpKeepProbes && (value < 1 || value > 127):
		return fmt.Sprintf("the value %d is out of range", value)
	}
	return ""
}

func (s kernelSocket) has(level int32) bool {
	switch level {
	case solSocket, solIP:
		return true
	case solIPv6:
		return s.ipv6
	case solTCP:
		return !s.datagrams
	case solUDP:
		return s.datagrams
	case solMPTCP:
		return s.mptcp
	}
	return false
}
