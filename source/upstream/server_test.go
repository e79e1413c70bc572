package upstream

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/diag"
	"xdspub/source/load"
)

// listen runs a server at an address, unix:PATH or tcp.
func listen(t *testing.T, address string, g *grpc.Server) (at string, stop func()) {
	t.Helper()
	network, name := "unix", address
	if address == "tcp" {
		network, name = "tcp", "127.0.0.1:0"
	}
	l, err := net.Listen(network, name)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(l) })
	stop = sync.OnceFunc(func() { g.Stop(); serving.Wait() })
	t.Cleanup(stop)
	if network == "unix" {
		return "unix:" + name, stop
	}
	return l.Addr().String(), stop
}

// overEach runs a test over each transport.
func overEach(t *testing.T, run func(*testing.T, Transport)) {
	for _, by := range Transports {
		t.Run(string(by), func(t *testing.T) {
			t.Parallel()
			run(t, by)
		})
	}
}

// follower is an Upstream that runs, with shorter bounds.
type follower struct {
	*Upstream
	t    *testing.T
	stop func()
}

// followed runs an Upstream of servers.
func followed(t *testing.T, by Transport, change func(*Upstream), servers ...string) *follower {
	t.Helper()
	o := Options{Name: "xds://test", Transport: by, Node: &corev3.Node{Id: "a", Cluster: "b"}, Runtime: []string{"rtds"}, QuietPeriod: 10 * time.Millisecond, Judge: judgeDecoded}
	for _, s := range servers {
		o.Servers = append(o.Servers, Server{Address: s})
	}
	u := New(o)
	u.bounds.startQuiet, u.bounds.leastPause, u.bounds.failbackEvery = 50*time.Millisecond, 10*time.Millisecond, 50*time.Millisecond
	u.bounds.absentAfter, u.bounds.repeatEvery = 300*time.Millisecond, 100*time.Millisecond
	if change != nil {
		change(u)
	}
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { u.Run(ctx) })
	f := &follower{u, t, func() { end(); running.Wait() }}
	t.Cleanup(f.stop)
	return f
}

// judgeDecoded returns the findings of decoding.
func judgeDecoded(_ context.Context, c load.Contents) (list diag.List, _ error) {
	for _, f := range c.Files {
		list = append(list, f.Diagnostics()...)
	}
	return append(list, c.Findings...), nil
}

// wait returns the first contents that are as wanted, after accept has accepted all contents before.
func (f *follower) wait(accept bool, wanted func(load.Contents) bool) load.Contents {
	f.t.Helper()
	late := time.After(20 * time.Second)
	for {
		c, err := f.Read(f.t.Context())
		if err == nil {
			if wanted(c) {
				return c
			}
			if accept {
				f.Judged(load.Judgement{N: c.N, Accepted: true})
			}
		}
		select {
		case <-f.Changed():
		case <-time.After(20 * time.Millisecond):
		case <-late:
			f.t.Fatalf("the contents do not come: %v %v %v", keys(c), err, c.Findings)
		}
	}
}

// keys returns the resources as texts.
func keys(c load.Contents) (list []string) {
	for _, f := range c.Files {
		for _, r := range f.Resources {
			list = append(list, r.Type.API+"/"+r.Name)
		}
	}
	return list
}

var ads = &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}, ResourceApiVersion: corev3.ApiVersion_V3}

func edsCluster(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads},
	}
}

func endpoints(name string) *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: name}
}

func routes(name string) *routev3.RouteConfiguration { return &routev3.RouteConfiguration{Name: name} }

// listener returns a listener with a filter chain of TLS by a secret, and routes.
func listener(name, routes, secret string) *listenerv3.Listener {
	manager := pack(&hcmv3.HttpConnectionManager{StatPrefix: "a", RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{RouteConfigName: routes, ConfigSource: ads}}})
	chain := &listenerv3.FilterChain{Filters: []*listenerv3.Filter{{Name: "http", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: manager}}}}
	if secret != "" {
		chain.TransportSocket = &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: pack(&tlsv3.DownstreamTlsContext{
			CommonTlsContext: &tlsv3.CommonTlsContext{TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{{Name: secret, SdsConfig: ads}}},
		})}}
	}
	return &listenerv3.Listener{Name: name, FilterChains: []*listenerv3.FilterChain{chain}}
}

func pack(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return a
}

// wrap returns a resource with a name around.
func wrap(name string, m proto.Message) *discoveryv3.Resource {
	return &discoveryv3.Resource{Name: name, Version: "1", Resource: pack(m)}
}

// socketOf returns the path of a new socket.
func socketOf(t *testing.T) string { return filepath.Join(t.TempDir(), "s") }
