// Package serve serves Snapshots to clients of the xDS transport protocol.
package serve

import (
	"context"

	clusterservice "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	extensionservice "github.com/envoyproxy/go-control-plane/envoy/service/extension/v3"
	listenerservice "github.com/envoyproxy/go-control-plane/envoy/service/listener/v3"
	routeservice "github.com/envoyproxy/go-control-plane/envoy/service/route/v3"
	runtimeservice "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	secretservice "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/config"
	"github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/rest/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/sotw/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/stream/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"

	"xdspub/serve/cache"
	"xdspub/xds"
)

// StreamServer passes each stream of a client to a go-control-plane server, with a Stream of a cache behind it: the
// cache of the client's Aggregate or, outside of a Server, the cache of the StreamServer.
type StreamServer struct {
	cache *cache.Cache
}

// Streams returns a StreamServer.
func Streams(c *cache.Cache) StreamServer { return StreamServer{c} }

// Register registers the aggregated discovery service and the services of the single types.
func Register(g *grpc.Server, c *cache.Cache) {
	s := Streams(c)
	all := server.NewServerAdvanced(rest.NewServer(nil, nil), s, s)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, all)
	clusterservice.RegisterClusterDiscoveryServiceServer(g, all)
	endpointservice.RegisterEndpointDiscoveryServiceServer(g, all)
	endpointservice.RegisterLocalityEndpointDiscoveryServiceServer(g, localityEndpoints{StreamServer: s})
	extensionservice.RegisterExtensionConfigDiscoveryServiceServer(g, all)
	listenerservice.RegisterListenerDiscoveryServiceServer(g, all)
	routeservice.RegisterRouteDiscoveryServiceServer(g, all)
	routeservice.RegisterScopedRoutesDiscoveryServiceServer(g, all)
	routeservice.RegisterVirtualHostDiscoveryServiceServer(g, all)
	runtimeservice.RegisterRuntimeDiscoveryServiceServer(g, all)
	secretservice.RegisterSecretDiscoveryServiceServer(g, all)
}

// localityEndpoints is the LEDS service, which go-control-plane's server lacks.
type localityEndpoints struct {
	endpointservice.UnimplementedLocalityEndpointDiscoveryServiceServer
	StreamServer
}

// DeltaLocalityEndpoints serves an incremental stream.
func (s localityEndpoints) DeltaLocalityEndpoints(client endpointservice.LocalityEndpointDiscoveryService_DeltaLocalityEndpointsServer) error {
	return s.DeltaStreamHandler(client, xds.LocalityEndpoints.URL())
}

// named is the option of go-control-plane's servers by which an empty list of names subscribes to nothing.
// For the types that the option doesn't list, an empty list subscribes to all resources: Envoy subscribes in
// this way to clusters, listeners, scoped routes and, at first, virtual hosts.
var named = config.DeactivateLegacyWildcardForTypes(namedURLs())

func namedURLs() (urls []string) {
	for _, t := range xds.Types {
		if !t.Wildcard {
			urls = append(urls, t.URL())
		}
	}
	return urls
}

// StreamHandler serves a state-of-the-world stream until the stream ends. An empty typeURL means the
// aggregated service.
func (s StreamServer) StreamHandler(client stream.Stream, typeURL string) error {
	c := s.open(client.Context(), typeURL, cache.Aggregated, cache.Singleton)
	defer c.Close()
	return sotw.NewServer(client.Context(), c, c, sotw.WithOrderedADS(), named).StreamHandler(client, typeURL)
}

// DeltaStreamHandler serves an incremental stream until the stream ends. An empty typeURL means the
// aggregated service.
func (s StreamServer) DeltaStreamHandler(client stream.DeltaStream, typeURL string) error {
	c := s.open(client.Context(), typeURL, cache.DeltaAggregated, cache.DeltaSingleton)
	defer c.Close()
	return delta.NewServer(client.Context(), c, c, named).DeltaStreamHandler(client, typeURL)
}

// answers is what go-control-plane's servers need of a stream: a *cache.Stream, or a *guard around one.
type answers interface {
	cachev3.ConfigWatcher
	sotw.Callbacks
	delta.Callbacks
	Close()
}

func (s StreamServer) open(ctx context.Context, typeURL string, aggregated, singleton cache.Kind) answers {
	kind, only := singleton, xds.TypeOfURL(typeURL)
	if typeURL == resource.AnyType {
		kind, only = aggregated, nil
	}
	if session := sessionOf(ctx); session != nil {
		return session.guarded(kind, only)
	}
	return s.cache.Open(kind, only)
}
