package listener

import (
	"fmt"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var listenerOptions = &validate.Rule{
	Code: "listener-options",
	Doc: `A listener has an option that its kind does not support.

Envoy rejects enable_mptcp for UDP listeners and pipes, bind_to_port: false for UDP,
connection_balance_config for QUIC ("doesn't work with connection balancer"), and every
socket setting of an internal listener ("has unsupported tcp listener feature", "does not
support socket option").

A UDP listener with enable_reuse_port: false is rejected unless Envoy has one worker
(--concurrency 1, or one core): a warning. On a TCP listener Envoy ignores
udp_listener_config (a warning), except quic_options beside an http_connection_manager with
another codec, which it rejects ("Non-HTTP/3 codec configured on QUIC listener").`,
	Checks: []diag.Check{
		{Name: "bind-to-port", Summary: "A UDP listener does not bind to its port."},
		{Name: "connection-balance", Summary: "A QUIC listener has connection_balance_config."},
		{Name: "internal-socket", Summary: "An internal listener has the setting of a socket."},
		{Name: "mptcp", Summary: "A pipe or a UDP listener has enable_mptcp."},
		{Name: "reuse-port", Summary: "A UDP listener does not reuse its port."},
		{Name: "udp-options", Summary: "A listener that is not UDP has udp_listener_config."},
	},
	Messages: []protoreflect.FullName{"envoy.config.listener.v3.Listener"},
	Node: func(p *validate.Pass, n *xds.Node) {
		l := n.Message.(*listenerv3.Listener)
		switch facts.TransportOf(l) {
		case facts.Connections:
			checkConnectionOptions(p, l)
		case facts.QUIC:
			if l.GetConnectionBalanceConfig() != nil {
				p.Report(validate.Finding{
					Check:   "connection-balance",
					Path:    "connection_balance_config",
					Message: "a QUIC listener does not support connection_balance_config",
					Help:    "remove it: the kernel balances the connections over the workers",
				})
			}
			checkDatagramOptions(p, l)
		case facts.Datagrams:
			checkDatagramOptions(p, l)
		}
	},
}

// speaksMoreThanHTTP3 reports whether a connection manager of the listener has another codec_type than HTTP3.
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
			Check: "udp-options",
			Path:  "udp_listener_config", Warning: true,
			Message: "Envoy ignores udp_listener_config: the listener's address is not UDP",
			Help:    "set protocol: UDP in the address, or remove udp_listener_config",
		}
		if speaksMoreThanHTTP3(l) {
			f.Warning = false
			f.Message = "quic_options need a UDP address and codec_type HTTP3"
		}
		p.Report(f)
	}
	if l.GetInternalListener() != nil {
		checkInternalOptions(p, l)
		return
	}
	for _, a := range addresses(l) {
		if l.GetEnableMptcp() && a.GetPipe() != nil {
			p.Report(validate.Finding{Check: "mptcp", Path: "enable_mptcp", Message: "a pipe does not support " +
				"enable_mptcp", Help: "remove it: MPTCP works with IP addresses only"})
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
				Check:   "internal-socket",
				Path:    option.name,
				Message: fmt.Sprintf("an internal listener has no socket and can't have %s", option.name),
				Help:    "remove it",
			})
		}
	}
}

func checkDatagramOptions(p *validate.Pass, l *listenerv3.Listener) {
	if l.GetEnableMptcp() {
		p.Report(validate.Finding{Check: "mptcp", Path: "enable_mptcp", Message: "a UDP listener does not support " +
			"enable_mptcp", Help: "remove it: MPTCP works with TCP only"})
	}
	if !bindsToPort(l) {
		path := xds.Path("bind_to_port")
		if l.GetBindToPort() == nil {
			path = "deprecated_v1"
		}
		p.Report(validate.Finding{
			Check:   "bind-to-port",
			Path:    path,
			Message: "a UDP listener does not support bind_to_port: false",
			Help:    "remove it: no other listener passes datagrams on",
		})
	}
	if !reusesPort(l) {
		p.Report(validate.Finding{
			Check: "reuse-port",
			Path:  "enable_reuse_port", Warning: true,
			Message: "a UDP listener needs enable_reuse_port: " + p.Resource.Refusal() + ", unless it has one worker",
			Help:    "remove it, or start Envoy with --concurrency 1",
		})
	}
}
