package address

import (
	"fmt"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var endpointAddress = &validate.Rule{
	Code: "endpoint-address",
	Doc: `An endpoint's address is missing, or its cluster can't use it.

Endpoints of STATIC and EDS clusters need an address ("Address must be set"), without a
network namespace. A pipe or an internal listener has no port, so Envoy rejects a health
check port beside it ("Invalid host configuration: non-zero port for non-IP address").
If the address of the health check itself is a pipe or an internal listener, a port beside
it crashes Envoy.

A cluster that uses DNS resolves the name in socket_address. Envoy accepts a pipe there,
and the endpoint gets no requests; it accepts a named_port, and connects to port 0.`,
	Checks: []diag.Check{
		{Name: "dns-hostname", Summary: "A cluster uses DNS, and the endpoint has no hostname."},
		{Name: "health-check-address", Summary: "A port beside a health check address without one crashes Envoy."},
		{Name: "health-check-port", Summary: "A health check has a port, and the endpoint's address has none."},
		{Name: "named-port", Summary: "Envoy does not resolve a named port."},
		{Name: "network-namespace", Summary: "An endpoint has a network namespace."},
		{Name: "no-address", Summary: "An endpoint, or an additional address, is empty."},
	},
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
			Check:   "no-address",
			Path:    n.Path(),
			Message: "the endpoint has no address",
			Help:    "add endpoint: {address: {socket_address: …}}",
		})
		return
	}
	for i, additional := range endpoint.GetAdditionalAddresses() {
		if additional.GetAddress() == nil {
			p.Report(validate.Finding{
				Check:   "no-address",
				Path:    n.Path().Field("endpoint").Field("additional_addresses").Index(i),
				Message: "the additional address is empty", Help: "add the address, or remove the entry",
			})
		}
	}
	if namespace := endpoint.GetAddress().GetSocketAddress().GetNetworkNamespaceFilepath(); namespace != "" {
		p.Report(validate.Finding{
			Check:   "network-namespace",
			Path:    n.Path().Field("endpoint").Field("address").Field("socket_address").Field("network_namespace_filepath"),
			Message: fmt.Sprintf("an endpoint can't have a network namespace, and this one has %q", namespace),
			Help:    "remove it: only listeners and source addresses support network namespaces",
		})
	}
	port := endpoint.GetHealthCheckConfig().GetPortValue()
	if !facts.NotIP(endpoint.GetAddress()) {
		checkHealthCheckAddress(p, n, endpoint)
	} else if port != 0 {
		p.Report(validate.Finding{
			Check:   "health-check-port",
			Path:    n.Path().Field("endpoint").Field("health_check_config").Field("port_value"),
			Message: fmt.Sprintf("the endpoint's address has no port, and its health check has port %d", port),
			Help:    "remove the port, or set the health check's own address with its port",
		})
	}
}

func checkLookedUpEndpoint(p *validate.Pass, n *xds.Node, e *endpointv3.LbEndpoint) {
	address := e.GetEndpoint().GetAddress()
	switch {
	case address.GetSocketAddress() == nil && (address == nil || facts.NotIP(address)):
		p.Report(validate.Finding{
			Check:   "dns-hostname",
			Path:    n.Path(),
			Message: "the cluster uses DNS and the endpoint has no hostname to resolve: it gets no requests",
			Help:    "write a socket_address, or set the cluster's type to STATIC",
			Warning: true,
		})
	case address.GetSocketAddress().GetNamedPort() != "":
		p.Report(validate.Finding{
			Check:   "named-port",
			Path:    n.Path().Field("endpoint").Field("address").Field("socket_address").Field("named_port"),
			Message: fmt.Sprintf("Envoy does not resolve the named port %q and connects to port 0", address.GetSocketAddress().GetNamedPort()),
			Help:    "write the port number in port_value",
			Warning: true,
		})
	}
	checkHealthCheckAddress(p, n, e.GetEndpoint())
}

func checkHealthCheckAddress(p *validate.Pass, n *xds.Node, endpoint *endpointv3.Endpoint) {
	check := endpoint.GetHealthCheckConfig()
	if check.GetPortValue() != 0 && facts.NotIP(check.GetAddress()) {
		p.Report(validate.Finding{
			Check:   "health-check-address",
			Path:    n.Path().Field("endpoint").Field("health_check_config").Field("port_value"),
			Message: fmt.Sprintf("health check port %d beside a health check address that is not an IP address crashes Envoy", check.GetPortValue()),
			Help:    "remove the port",
		})
	}
}
