package cache

import (
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"xdspub/xds"
	"xdspub/xds/bind"
)

// Kind is a variant of the transport protocol. Clients of one Kind get the same resources.
type Kind string

// The variants: state of the world and incremental, each aggregated or by singleton services,
// and REST.
const (
	Aggregated      Kind = "ads"
	DeltaAggregated Kind = "delta-ads"
	Singleton       Kind = "grpc"
	DeltaSingleton  Kind = "delta-grpc"
	REST            Kind = "rest"
)

// delta reports whether the variant is incremental.
func (k Kind) delta() bool { return k == DeltaAggregated || k == DeltaSingleton }

// aggregated reports whether one stream has all types.
func (k Kind) aggregated() bool { return k == Aggregated || k == DeltaAggregated }

// medium is a Kind as bind sees it.
type medium struct {
	kind Kind
	// cluster is the one of a client's bootstrap that leads to a singleton service.
	cluster string
	// verbatim leaves a config source that says ads or self as its author wrote it, on an aggregated stream.
	verbatim bool
}

// Source returns the config source that leads a client back to this server. What else the
// author set on the config source stays.
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
		// Long polling: the server answers once there is something to say. Without a delay Envoy
		// refuses the config source.
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

// Inline inlines what Envoy asks for in groups: that is by the incremental variants only.
func (m medium) Inline() bind.Inline { return bind.Inline{Groups: !m.kind.delta()} }
