package bootstrap

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path"
	"strconv"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"xdspub/internal/addr"
)

// Server is a server of resources.
type Server struct {
	// Address is the address of the server as Envoy sees it. The path of a socket must be absolute.
	Address addr.Address
	// Cluster is the name of the cluster for the server. The server names this cluster in resources for clients
	// without an aggregated transport (cache.Options.Cluster).
	Cluster string
	// TLS is nil for TCP without TLS, and for a Unix socket.
	TLS *TLS
}

// DefaultCluster is the name of the cluster for the server, unless the user chooses another.
const DefaultCluster = "xds_cluster"

const (
	// connectTimeout is long enough for a server in another region.
	connectTimeout = 5 * time.Second
	// keepalive is the time after which Envoy pings a silent server, to notice that the machine is gone. It is
	// longer than the time at which a server sees abuse (serve.Limits.PingGap).
	keepalive        = 30 * time.Second
	keepaliveTimeout = 5 * time.Second
)

func (s Server) check() error {
	host, port := s.hostPort()
	ip, err := netip.ParseAddr(host)
	switch {
	case s.Cluster == "":
		return errors.New("the name of the cluster that leads to the server is empty")
	case s.Address.Network == "unix" && !path.IsAbs(s.Address.Name):
		return fmt.Errorf("the socket of the server %q is not an absolute path", s.Address.Name)
	case s.Address.Network == "unix" && s.TLS != nil:
		return fmt.Errorf("%s is a Unix socket, which has no TLS", s.Address)
	case s.Address.Network == "unix":
		return nil
	case s.Address.Network != "tcp":
		return errors.New("there is no address of the server")
	case host == "" || err == nil && ip.IsUnspecified():
		return fmt.Errorf("%s is where a server listens on all addresses: write the one that Envoy connects to", s.Address)
	case port == 0:
		return fmt.Errorf("%s has the port 0: write the one that Envoy connects to", s.Address)
	case s.TLS != nil:
		return s.TLS.check()
	}
	return nil
}

// hostPort returns the host and the port of the address. addr.Parse has accepted the address.
func (s Server) hostPort() (host string, port uint32) {
	host, text, _ := net.SplitHostPort(s.Address.Name)
	n, _ := strconv.ParseUint(text, 10, 16)
	return host, uint32(n)
}

// cluster returns the cluster for the server.
func (s Server) cluster(t Transport) (*clusterv3.Cluster, error) {
	host, port := s.hostPort()
	address := &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
	c := &clusterv3.Cluster{
		Name: s.Cluster, ConnectTimeout: durationpb.New(connectTimeout),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
	}
	if s.Address.Network == "unix" {
		address = &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: s.Address.Name}}}
	} else if _, err := netip.ParseAddr(host); err != nil {
		// With LOGICAL_DNS, each new connection goes to the present addresses of the name, by IPv4 or IPv6.
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_LOGICAL_DNS}
		c.DnsLookupFamily = clusterv3.Cluster_ALL
	}
	c.LoadAssignment = &endpointv3.ClusterLoadAssignment{ClusterName: s.Cluster, Endpoints: []*endpointv3.LocalityLbEndpoints{{
		LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address}}}},
	}}}
	var failed, failedTLS error
	if t != REST {
		c.TypedExtensionProtocolOptions = make(map[string]*anypb.Any)
		c.TypedExtensionProtocolOptions["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"], failed = anypb.New(http2())
	} else if s.Address.Network == "tcp" {
		c.UpstreamConnectionOptions = &clusterv3.UpstreamConnectionOptions{
			TcpKeepalive: &corev3.TcpKeepalive{KeepaliveTime: wrapperspb.UInt32(uint32(keepalive.Seconds()))},
		}
	}
	if s.TLS != nil {
		c.TransportSocket, failedTLS = s.TLS.transportSocket(s.name())
	}
	return c, errors.Join(failed, failedTLS)
}

// http2 returns HTTP options with HTTP/2, which gRPC needs.
func http2() *httpv3.HttpProtocolOptions {
	return &httpv3.HttpProtocolOptions{UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
		ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
			Http2ProtocolOptions: &corev3.Http2ProtocolOptions{ConnectionKeepalive: &corev3.KeepaliveSettings{
				Interval: durationpb.New(keepalive), Timeout: durationpb.New(keepaliveTimeout),
			}},
		}},
	}}
}
