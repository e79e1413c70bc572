package bootstrap

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

const (
	reverseTunnelFilter    = "envoy.extensions.filters.network.reverse_tunnel.v3.ReverseTunnel"
	acceptsReverseTunnels  = "envoy.extensions.bootstrap.reverse_tunnel.upstream_socket_interface.v3.UpstreamReverseConnectionSocketInterface"
	initiateReverseTunnels = "envoy.extensions.bootstrap.reverse_tunnel.downstream_socket_interface.v3.DownstreamReverseConnectionSocketInterface"
)

var bootstrapExtension = &validate.Rule{
	Code:     "bootstrap-extension",
	Severity: diag.Error,
	Doc: `A listener needs a bootstrap extension that is missing.

The filter reverse_tunnel needs the upstream socket interface in bootstrap_extensions ("the
upstream reverse_tunnel socket interface bootstrap extension … is not configured"). A
listener with an rc:// address needs the downstream one: envoy --mode validate accepts it,
and a running Envoy rejects it ("failed to create socket using custom interface"). If the
bootstrap is not known, the finding is a warning. For internal listeners, listener-address
reports the missing extension.`,
	Checks: []diag.Check{
		{Name: "rc-address", Summary: "A listener with an rc:// address has no downstream socket interface."},
		{Name: "reverse-tunnel", Summary: "reverse_tunnel has no upstream socket interface."},
	},
	Messages: []protoreflect.FullName{"envoy.config.core.v3.SocketAddress", reverseTunnelFilter},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *corev3.SocketAddress:
			if m.GetResolverName() == facts.ReverseConnectionResolver &&
				facts.Inside(n, "envoy.config.listener.v3.Listener.address", "envoy.config.listener.v3.AdditionalAddress.address") {
				needsExtension(p, n, "rc-address", initiateReverseTunnels, "a listener with an rc:// address")
			}
		default:
			needsExtension(p, n, "reverse-tunnel", acceptsReverseTunnels, "reverse_tunnel")
		}
	},
}

func needsExtension(p *validate.Pass, n *xds.Node, check validate.CheckName, extension protoreflect.FullName, what string) {
	if p.BootstrapFacts.HasExtension(extension) {
		return
	}
	help := "add it to bootstrap_extensions, and name that bootstrap with --bootstrap"
	if p.Resource.OfBootstrap() {
		help = "add it to bootstrap_extensions"
	}
	p.Report(validate.Finding{
		Check:   check,
		Path:    n.Path(),
		Message: fmt.Sprintf("%s needs the bootstrap extension %s", what, extension.Name()),
		Help:    help,
		Warning: !p.BootstrapFacts.Given(),
	})
}
