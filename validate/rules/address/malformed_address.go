package address

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/data/dns/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var malformedAddress = &validate.Rule{
	Code: "malformed-address",
	Doc: `An address is not a valid IP address.

Envoy resolves hostnames only for the endpoints of clusters that use DNS (STRICT_DNS,
LOGICAL_DNS). Everywhere else it needs an IP address: in static and EDS endpoints,
listeners, source addresses, DNS resolvers, health checks, the tables of dns_filter and
address ranges. It rejects a hostname, an IPv4 address with leading zeros or fewer than
four parts, and an IPv6 address in brackets ("malformed IP address"), and a named_port
("IP resolver can't handle"). In some address ranges it crashes instead (rate limits by
remote_address_match). The trusted ranges of the XFF extension are the exception: Envoy
accepts an invalid one, and trusts nobody by it.

A cluster that uses DNS must not set resolver_name. Elsewhere the released binary knows
envoy.ip and envoy.resolvers.reverse_connection; the latter reads
rc://NODE:CLUSTER:TENANT@TARGET:COUNT, with port 0.`,
	Messages: []protoreflect.FullName{
		"envoy.config.core.v3.CidrRange",
		"envoy.config.core.v3.SocketAddress",
		"envoy.data.dns.v3.DnsTable.AddressList",
		"xds.core.v3.CidrRange",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *corev3.CidrRange:
			checkRange(p, n, m.GetAddressPrefix())
		case *xdscorev3.CidrRange:
			checkRange(p, n, m.GetAddressPrefix())
		case *dnsv3.DnsTable_AddressList:
			for i, address := range m.GetAddress() {
				if address != "" && !isIP(address) {
					p.Report(validate.Finding{
						Path:    n.Path().Field("address").Index(i),
						Message: fmt.Sprintf("%q is not an IP address", address),
						Help:    addressHelp(address, "write an IP address"),
					})
				}
			}
		case *corev3.SocketAddress:
			if wantsIP(p.Envoy, n) {
				checkSocketAddress(p, n, m)
			}
			checkResolverName(p, n, m.GetResolverName())
		}
	},
}

func checkRange(p *validate.Pass, n *xds.Node, address string) {
	if address == "" || isIP(address) {
		return
	}
	p.Report(validate.Finding{
		Path:    n.Path().Field("address_prefix"),
		Message: fmt.Sprintf("%q is not an IP address", address),
		Help:    addressHelp(address, "write an IP address; the length of the range goes into prefix_len"),
		Warning: ignoredRange(n),
	})
}

func checkResolverName(p *validate.Pass, n *xds.Node, name string) {
	if at := addressAt(n); slices.Contains(resolverAddresses, at.Field()) && !facts.AsksResolver(p.Envoy, at) {
		return // Envoy ignores the resolvers of the cluster
	}
	looksUp := facts.Inside(n, "envoy.config.endpoint.v3.LbEndpoint") && facts.UseOfEndpoints(p.Envoy, n) == facts.EndpointsLookedUp
	switch {
	case name == "":
	case looksUp:
		if c, _ := xds.Enclosing[*clusterv3.Cluster](n); p.Envoy.ClusterKindOf(c).Factory == "envoy.clusters.redis" {
			return // Envoy ignores resolver_name here
		}
		p.Report(validate.Finding{
			Path:    n.Path().Field("resolver_name"),
			Message: fmt.Sprintf("a cluster that uses DNS can't set resolver_name, and this one has %q", name),
			Help:    "remove resolver_name: the cluster's type says how names are resolved",
		})
	case name != "envoy.ip" && name != facts.ReverseConnectionResolver:
		p.Report(validate.Finding{
			Path:    n.Path().Field("resolver_name"),
			Message: fmt.Sprintf("unknown address resolver %q", name),
			Help:    "remove it; Envoy has envoy.ip and " + facts.ReverseConnectionResolver + ", and uses DNS by the cluster's type",
		})
	}
}

// reverseConnection matches the address of a listener of reverse connections. The tenant may be empty.
var reverseConnection = regexp.MustCompile(`^rc://[^:@]+:[^:@]+:[^:@]*@[^:@]+:[0-9]+$`)

func checkReverseConnection(p *validate.Pass, n *xds.Node, m *corev3.SocketAddress) {
	switch {
	case !reverseConnection.MatchString(m.GetAddress()):
		p.Report(validate.Finding{
			Path:    n.Path().Field("address"),
			Message: fmt.Sprintf("%q is not a valid reverse connection address", m.GetAddress()),
			Help:    "write rc://NODE:CLUSTER:TENANT@TARGET:COUNT",
		})
	case m.GetPortValue() != 0 || m.GetNamedPort() != "":
		p.Report(validate.Finding{
			Path:    n.Path().Field("port_value"),
			Message: "a reverse connection address must have port 0",
			Help:    "write port_value: 0",
		})
	}
}

func checkSocketAddress(p *validate.Pass, n *xds.Node, m *corev3.SocketAddress) {
	if m.GetResolverName() == facts.ReverseConnectionResolver {
		checkReverseConnection(p, n, m)
		return
	}
	if address := m.GetAddress(); address != "" && !isIP(address) {
		help := "write an IP address"
		if _, at := xds.Enclosing[*clusterv3.Cluster](n); at != nil {
			help = "write an IP address, or set the cluster's type to STRICT_DNS or LOGICAL_DNS"
		}
		p.Report(validate.Finding{
			Path:    n.Path().Field("address"),
			Message: fmt.Sprintf("%q is not an IP address, and Envoy does not resolve hostnames here", address),
			Help:    addressHelp(address, help),
		})
	}
	if name := m.GetNamedPort(); name != "" {
		p.Report(validate.Finding{
			Path:    n.Path().Field("named_port"),
			Message: fmt.Sprintf("Envoy can't resolve the named port %q of an IP address", name),
			Help:    "write the port number in port_value",
		})
	}
}

// ignoredRange reports whether Envoy ignores a malformed address range at the node.
func ignoredRange(n *xds.Node) bool {
	if n.Field() == "envoy.extensions.http.original_ip_detection.xff.v3.XffTrustedCidrs.cidrs" {
		return true
	}
	if !facts.Inside(n, "envoy.config.listener.v3.FilterChainMatch") {
		return false
	}
	// filter-chain-match reports a match that Envoy ignores.
	l, _ := xds.Enclosing[*listenerv3.Listener](n)
	return l.GetFilterChainMatcher() != nil || facts.Inside(n, "envoy.config.listener.v3.Listener.default_filter_chain")
}

// wantsIP reports whether Envoy accepts only an IP address in the socket address at the node.
func wantsIP(v *envoyapi.Version, n *xds.Node) bool {
	n = addressAt(n)
	if slices.Contains(resolverAddresses, n.Field()) {
		return facts.AsksResolver(v, n)
	}
	switch n.Field() {
	case "envoy.config.endpoint.v3.Endpoint.address", "envoy.config.endpoint.v3.Endpoint.AdditionalAddress.address":
		if facts.Inside(n, "envoy.config.endpoint.v3.ClusterLoadAssignment.named_endpoints") {
			return false // Envoy ignores named_endpoints
		}
		cluster, _ := xds.Enclosing[*clusterv3.Cluster](n)
		if cluster == nil {
			return true // an endpoint that comes by EDS
		}
		return v.ClusterKindOf(cluster).Factory == "envoy.cluster.static"
	case "envoy.config.bootstrap.v3.Admin.address",
		"envoy.config.core.v3.BindConfig.additional_source_addresses",
		"envoy.config.core.v3.BindConfig.source_address",
		"envoy.config.core.v3.ExtraSourceAddress.address",
		"envoy.config.endpoint.v3.Endpoint.HealthCheckConfig.address",
		"envoy.config.listener.v3.AdditionalAddress.address",
		"envoy.config.listener.v3.Listener.address",
		"envoy.config.metrics.v3.DogStatsdSink.address",
		"envoy.config.metrics.v3.StatsdSink.address",
		"envoy.extensions.transport_sockets.http_11_proxy.v3.Http11ProxyUpstreamTransport.default_proxy_address":
		return true
	}
	return false
}

// addressAt returns the Address around the socket address at n; if none is around it, n.
func addressAt(n *xds.Node) *xds.Node {
	if n.Parent != nil && n.Parent.Name() == "envoy.config.core.v3.Address" {
		return n.Parent
	}
	return n
}

// isIP reports whether Envoy reads s as an IP address. A zone after % may be any text: it names an interface of
// Envoy's machine, and xdspub does not know these.
func isIP(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

// addressHelp returns the help for a text that is no IP address: the correct form if the text is nearly one, or
// else otherwise.
func addressHelp(s, otherwise string) string {
	bare := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	parts := strings.Split(bare, ".")
	for i, part := range parts {
		if trimmed := strings.TrimLeft(part, "0"); trimmed != "" {
			parts[i] = trimmed
		} else if part != "" {
			parts[i] = "0"
		}
	}
	for _, candidate := range []string{bare, strings.Join(parts, ".")} {
		if isIP(candidate) {
			return fmt.Sprintf("write it as %s", candidate)
		}
	}
	return otherwise
}
