package address

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var endpointAddress = &validate.Rule{
	Code: "endpoint-address",
	Doc: `An endpoint's address is missing, or its cluster can't use it.

In STATIC and EDS clusters an endpoint needs an address ("Address must be set"),
without a network namespace. One that is no IP address, a pipe or an internal
listener, has no port for its health checks ("Invalid host configuration: non-zero
port for non-IP address"); and where the health check's own address is such a one,
a port beside it crashes Envoy.

A cluster that does DNS looks a name up that stands in a socket_address: an
endpoint by pipe is taken and gets no requests, one with a named_port gets port 0.`,
	Messages: []protoreflect.FullName{"envoy.config.endpoint.v3.LbEndpoint"},
	Node: func(p *validate.Pass, n *xds.Node) {
		e := n.Message.(*endpointv3.LbEndpoint)
		switch facts.UseOfEndpoints(p.Envoy, n) {
		case facts.EndpointsLiteral:
			checkLiteralEndpoint(p, n, e)
		case facts.EndpointsLookedUp:
			checkLookedUpEndpoint(p, n, e)
		}
	},
}

func checkLiteralEndpoint(p *validate.Pass, n *xds.Node, e *endpointv3.LbEndpoint) {
	endpoint := e.GetEndpoint()
	if endpoint.GetAddress() == nil {
		p.Report(validate.Finding{
			Path:    n.Path(),
			Message: "the endpoint has no address",
			Help:    "give it endpoint: {address: {socket_address: …}}",
		})
		return
	}
	for i, additional := range endpoint.GetAdditionalAddresses() {
		if additional.GetAddress() == nil {
			p.Report(validate.Finding{Path: n.Path().Field("endpoint").Field("additional_addresses").Index(i), Message: "additional address has no address", Help: "give the address, or remove it"})
		}
	}
	if namespace := endpoint.GetAddress().GetSocketAddress().GetNetworkNamespaceFilepath(); namespace != "" {
		p.Report(validate.Finding{
			Path:    n.Path().Field("endpoint").Field("address").Field("socket_address").Field("network_namespace_filepath"),
			Message: fmt.Sprintf("an endpoint in the network namespace %q", namespace),
			Help:    "remove it: only listeners and source addresses can have one",
		})
	}
	port := endpoint.GetHealthCheckConfig().GetPortValue()
	if !notIP(endpoint.GetAddress()) {
		checkHealthCheckAddress(p, n, endpoint)
	} else if port != 0 {
		p.Report(validate.Finding{
			Path:    n.Path().Field("endpoint").Field("health_check_config").Field("port_value"),
			Message: fmt.Sprintf("health check port %d of an endpoint whose address has no port", port),
			Help:    "remove it, or give the health check an address of its own and leave the port to that",
		})
	}
}

func checkLookedUpEndpoint(p *validate.Pass, n *xds.Node, e *endpointv3.LbEndpoint) {
	address := e.GetEndpoint().GetAddress()
	switch {
	case address.GetSocketAddress() == nil && (address == nil || notIP(address)):
		p.Report(validate.Finding{
			Path:    n.Path(),
			Message: "the endpoint has no name to look up, and gets no requests",
			Help:    "give it a socket_address, or make the cluster's type STATIC",
			Warning: true,
		})
	case address.GetSocketAddress().GetNamedPort() != "":
		p.Report(validate.Finding{
			Path:    n.Path().Field("endpoint").Field("address").Field("socket_address").Field("named_port"),
			Message: fmt.Sprintf("named port %q, which becomes port 0", address.GetSocketAddress().GetNamedPort()),
			Help:    "give its number in port_value",
			Warning: true,
		})
	}
	checkHealthCheckAddress(p, n, e.GetEndpoint())
}

func checkHealthCheckAddress(p *validate.Pass, n *xds.Node, endpoint *endpointv3.Endpoint) {
	check := endpoint.GetHealthCheckConfig()
	if check.GetPortValue() != 0 && notIP(check.GetAddress()) {
		p.Report(validate.Finding{
			Path:    n.Path().Field("endpoint").Field("health_check_config").Field("port_value"),
			Message: fmt.Sprintf("health check port %d beside a health check address that has no port, which crashes Envoy", check.GetPortValue()),
			Help:    "remove the port",
		})
	}
}

// notIP reports whether an address is a pipe or an internal listener.
func notIP(a *corev3.Address) bool {
	return a.GetPipe() != nil || a.GetEnvoyInternalAddress() != nil
}
