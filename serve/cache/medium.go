package cache

import (
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"xdspub/xds"
	"xdspub/xds/bind"
)

// Kind is a variant of the transport protocol.
type Kind string

// The Kinds: state of the world and incremental, each aggregated or with singleton services, and REST.
const (
	Aggregated      Kind = "ads"
	DeltaAggregated Kind = "delta-ads"
	Singleton       Kind = "grpc"
	DeltaSingleton  Kind = "delta-grpc"
	REST            Kind = "rest"
)

// delta reports whether the Kind is incremental.
func (k Kind) delta() bool { return k == DeltaAggregated || k == DeltaSingleton }

// aggregated reports whether a stream of the Kind has resources of all types.
func (k Kind) aggregated() bool { return k == Aggregated || k == DeltaAggregated }

// medium adapts a Kind for package bind.
type medium struct {
	kind Kind
	// cluster is the cluster in the client's bootstrap that leads to a singleton service.
	cluster string
	// verbatim keeps config sources with ads or self as written. Only aggregated Kinds use verbatim.
	verbatim bool
}

// Source returns the config source that leads a client back to this server; nil keeps the config source as
// written. Other settings of the author's config source stay.
func (m medium) Source(sub xds.Subscription) *corev3.ConfigSource {
	verbatim := m.verbatim && m.kind.aggregated()
	if verbatim && sub.Source.GetConfigSourceSpecifier() != nil {
		return nil
	}
	source := &corev3.ConfigSource{}
	if sub.Source != nil {
		source = proto.CloneOf(sub.Source)
	}
	if !verbatim {
		source.ResourceApiVersion = corev3.ApiVersion_V3
	}
	api := &corev3.ApiConfigSource{TransportApiVersion: corev3.ApiVersion_V3}
	switch m.kind {
	case Aggregated, DeltaAggregated:
		source.ConfigSourceSpecifier = &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}
		return source
	case REST:
		api.ApiType, api.ClusterNames = corev3.ApiConfigSource_REST, []string{m.cluster}
		// Use long polling: the server answers when resources change. Envoy refuses a config source without a
		// delay.
		api.RefreshDelay, api.RequestTimeout = durationpb.New(time.Second), durationpb.New(30*time.Second)
	case Singleton, DeltaSingleton:
		api.ApiType = corev3.ApiConfigSource_GRPC
		if m.kind.delta() {
			api.ApiType = corev3.ApiConfigSource_DELTA_GRPC
		}
		api.GrpcServices = []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
			EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: m.cluster},
		}}}
	}
	source.ConfigSourceSpecifier = &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: api}
	return source
}

// Inline inlines the types that Envoy requests in groups, except over incremental xDS: Envoy requests groups
// only there.
func (m medium) Inline() bind.Inline { return bind.Inline{Groups: !m.kind.delta()} }
