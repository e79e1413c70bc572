package listener

import (
	"fmt"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var listenerOptions = &validate.Rule{
	Code: "listener-options",
	Doc: `A listener has an option that its kind of listener does not support.

Envoy refuses enable_mptcp for UDP and for pipes, bind_to_port: false for UDP, a
connection_balance_config for QUIC ("doesn't work with connection balancer"), and for
an internal listener whatever is about sockets ("has unsupported tcp listener
feature", "does not support socket option").

A UDP listener without enable_reuse_port is refused by every Envoy with more than one
worker, which is an Envoy without --concurrency 1 on more than one core. What
udp_listener_config says of a TCP listener is never looked at, but for quic_options
beside an http_connection_manager of another codec ("Non-HTTP/3 codec configured on
QUIC listener").`,
	Messages: []protoreflect.FullName{"envoy.config.listener.v3.Listener"},
	Node: func(p *validate.Pass, n *xds.Node) {
		l := n.Message.(*listenerv3.Listener)
		switch facts.TransportOf(l) {
		case facts.Connections:
			checkConnectionOptions(p, l)
		case facts.QUIC:
			if l.GetConnectionBalanceConfig() != nil {
				p.Report(validate.Finding{
					Path:    "connection_balance_config",
					Message: "a QUIC listener can't balance its connections",
					Help:    "remove connection_balance_config: the kernel spreads them over the workers",
				})
			}
			checkDatagramOptions(p, l)
		case facts.Datagrams:
			checkDatagramOptions(p, l)
		}
	},
}

// speaksMoreThanHTTP3 reports whether a connection manager of the listener has another
// codec.
func speaksMoreThanHTTP3(l *listenerv3.Listener) (found bool) {
	xds.Walk(l, func(n *xds.Node) {
		m, ok := n.Message.(*hcmv3.HttpConnectionManager)
		found = found || ok && m.GetCodecType() != hcmv3.HttpConnectionManager_HTTP3
	})
	return found
}

func checkConnectionOptions(p *validate.Pass, l *listenerv3.Listener) {
	if l.GetUdpListenerConfig().GetQuicOptions() != nil {
		f := validate.Finding{
			Path: "udp_listener_config", Warning: true,
			Message: "the listener's address is not for UDP: its udp_listener_config is never looked at",
			Help:    "set protocol: UDP in the address, or remove udp_listener_config",
		}
		if speaksMoreThanHTTP3(l) {
			f.Warning = false
			f.Message = "the listener's address is not for UDP, and quic_options allow HTTP3 alone"
		}
		p.Report(f)
	}
	if l.GetInternalListener() != nil {
		checkInternalOptions(p, l)
		return
	}
	for _, a := range addresses(l) {
		if l.GetEnableMptcp() && a.GetPipe() != nil {
			p.Report(validate.Finding{Path: "enable_mptcp", Message: "a pipe can't have enable_mptcp", Help: "only IP addresses can have it"})
			return
		}
	}
}

func checkInternalOptions(p *validate.Pass, l *listenerv3.Listener) {
	for _, option := range []struct {
		name xds.Path
		set  bool
	}{
		{"connection_balance_config", l.GetConnectionBalanceConfig().GetExactBalance() != nil},
		{"enable_mptcp", l.GetEnableMptcp()},
		{"enable_reuse_port", l.GetEnableReusePort() != nil},
		{"freebind", l.GetFreebind().GetValue()},
		{"socket_options", len(l.GetSocketOptions()) > 0},
		{"tcp_backlog_size", l.GetTcpBacklogSize() != nil},
		{"tcp_fast_open_queue_length", l.GetTcpFastOpenQueueLength() != nil},
		{"transparent", l.GetTransparent().GetValue()},
	} {
		if option.set {
			p.Report(validate.Finding{
				Path:    option.name,
				Message: fmt.Sprintf("an internal listener has no socket, and can't have %s", option.name),
				Help:    "remove it",
			})
		}
	}
}

func checkDatagramOptions(p *validate.Pass, l *listenerv3.Listener) {
	if l.GetEnableMptcp() {
		p.Report(validate.Finding{Path: "enable_mptcp", Message: "a UDP listener can't have enable_mptcp", Help: "only TCP listeners can have it"})
	}
	if !bindsToPort(l) {
		path := xds.Path("bind_to_port")
		if l.GetBindToPort() == nil {
			path = "deprecated_v1"
		}
		p.Report(validate.Finding{
			Path:    path,
			Message: "a UDP listener can't have bind_to_port: false",
			Help:    "remove it: no other listener hands datagrams on",
		})
	}
	if !reusesPort(l) {
		p.Report(validate.Finding{
			Path: "enable_reuse_port", Warning: true,
			Message: "a UDP listener without enable_reuse_port: " + p.Resource.Refusal() + ", unless it has one worker only",
			Help:    "remove it, or start Envoy with --concurrency 1",
		})
	}
}
