package upstream

import (
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"xdspub/xds"
)

// Transport is a variant of the xDS transport protocol. An aggregated transport has one stream for all types. A
// singleton transport has a stream for each type.
type Transport string

// The delta transports are incremental, the other transports are by state of the world. The empty Transport means
// DeltaAggregated.
const (
	DeltaAggregated Transport = "delta-ads"
	Aggregated      Transport = "ads"
	DeltaSingleton  Transport = "delta-grpc"
	Singleton       Transport = "grpc"
)

// Transports lists all transports.
var Transports = []Transport{DeltaAggregated, Aggregated, DeltaSingleton, Singleton}

// delta reports whether the transport is incremental.
func (t Transport) delta() bool { return t != Aggregated && t != Singleton }

// aggregated reports whether all types share a stream.
func (t Transport) aggregated() bool { return t != DeltaSingleton && t != Singleton }

// Clusters returns the names of the clusters through which a bootstrap asks for CDS and LDS by gRPC; none for an
// aggregated transport.
func (t Transport) Clusters(b *bootstrapv3.Bootstrap) (names []string) {
	if t.aggregated() {
		return nil
	}
	of := b.GetDynamicResources()
	return append(clustersOf(of.GetCdsConfig()), clustersOf(of.GetLdsConfig())...)
}

// carries reports whether a client can subscribe to a type by the transport.
func (t Transport) carries(of *xds.Type) bool { return t.delta() || of.Asked != xds.InGroups }

// codec returns a new codec of the transport, for a client with dynamic parameters.
func (t Transport) codec(params map[string]string) codec {
	if t.delta() {
		return incremental{params}
	}
	return stateOfTheWorld{params, make(map[*xds.Type]*repeated)}
}

// method returns the gRPC method of a stream for a type.
func (t Transport) method(of *xds.Type) string {
	is := singletons[of]
	if t.aggregated() {
		is = service{"discovery.v3.AggregatedDiscoveryService", "AggregatedResources"}
	}
	protocol := "Stream"
	if t.delta() {
		protocol = "Delta"
	}
	return "/envoy.service." + is.name + "/" + protocol + is.resources
}

// service is a discovery service: its name below envoy.service, and its resources as in the names of the methods.
type service struct{ name, resources string }

// singletons are the discovery services of the types.
var singletons = map[*xds.Type]service{
	xds.Cluster:            {"cluster.v3.ClusterDiscoveryService", "Clusters"},
	xds.Endpoints:          {"endpoint.v3.EndpointDiscoveryService", "Endpoints"},
	xds.LocalityEndpoints:  {"endpoint.v3.LocalityEndpointDiscoveryService", "LocalityEndpoints"},
	xds.Listener:           {"listener.v3.ListenerDiscoveryService", "Listeners"},
	xds.RouteConfiguration: {"route.v3.RouteDiscoveryService", "Routes"},
	xds.ScopedRoutes:       {"route.v3.ScopedRoutesDiscoveryService", "ScopedRoutes"},
	xds.VirtualHost:        {"route.v3.VirtualHostDiscoveryService", "VirtualHosts"},
	xds.Secret:             {"secret.v3.SecretDiscoveryService", "Secrets"},
	xds.Runtime:            {"runtime.v3.RuntimeDiscoveryService", "Runtime"},
	xds.ExtensionConfig:    {"extension.v3.ExtensionConfigDiscoveryService", "ExtensionConfigs"},
}

// request is a request of any transport.
type request struct {
	of *xds.Type
	// wildcard means that the first request of the type subscribes to all resources.
	wildcard bool
	// subscribe and unsubscribe are changes of the names that the stream subscribes to.
	subscribe, unsubscribe []string
	// deferred means that the changes wait for the next answer of the type. By state of the world, each request answers
	// the last response. So a request between the response and the verdict would be a false ACK.
	deferred bool
	// nonce and version are those of the response that the request answers; nonce is empty for a request without an
	// answer. With a reason, the answer is a NACK.
	nonce, version, reason string
}

// detail returns the reason of a NACK for the server; nil for an ACK.
func (r request) detail() *rpcstatus.Status {
	if r.reason == "" {
		return nil
	}
	return &rpcstatus.Status{Code: int32(codes.InvalidArgument), Message: r.reason}
}

// response is a response of any transport.
type response struct {
	url, nonce, version string
	resources           []*discoveryv3.Resource
	removed             []string
	// whole means that the server has no other resources of the type.
	whole bool
}

// codec turns requests into messages of the protocol, and messages into responses.
type codec interface {
	// request returns the message of a request; nil for a request with deferred. node is for the first message of a
	// stream; nil for other messages.
	request(r request, node *corev3.Node) proto.Message
	// message returns an empty message, into which the caller decodes a response.
	message() proto.Message
	response(proto.Message) (response, error)
}

// locators returns names as locators with dynamic parameters.
func locators(names []string, params map[string]string) (list []*discoveryv3.ResourceLocator) {
	for _, name := range names {
		list = append(list, &discoveryv3.ResourceLocator{Name: name, DynamicParameters: params})
	}
	return list
}

// incremental is the codec of the incremental protocol.
type incremental struct{ params map[string]string }

func (c incremental) request(r request, node *corev3.Node) proto.Message {
	m := &discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: r.of.URL(), ResponseNonce: r.nonce, ErrorDetail: r.detail()}
	if len(c.params) == 0 {
		m.ResourceNamesSubscribe, m.ResourceNamesUnsubscribe = r.subscribe, r.unsubscribe
		return m
	}
	if r.wildcard {
		r.subscribe = []string{"*"}
	}
	m.ResourceLocatorsSubscribe, m.ResourceLocatorsUnsubscribe = locators(r.subscribe, c.params), locators(r.unsubscribe, c.params)
	return m
}

func (incremental) message() proto.Message { return &discoveryv3.DeltaDiscoveryResponse{} }

func (incremental) response(m proto.Message) (response, error) {
	d := m.(*discoveryv3.DeltaDiscoveryResponse)
	return response{url: d.GetTypeUrl(), nonce: d.GetNonce(), resources: d.GetResources(), removed: d.GetRemovedResources()}, nil
}
