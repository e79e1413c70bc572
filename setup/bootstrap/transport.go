package bootstrap

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Transport is the way in which an Envoy gets resources.
type Transport string

// The transports: files, and the variants of the xDS transport protocol. An aggregated transport, by state of
// the world or incremental, has one stream for all types. Singleton services have a stream for each type.
const (
	File            Transport = "file"
	Aggregated      Transport = "ads"
	DeltaAggregated Transport = "delta-ads"
	Singleton       Transport = "grpc"
	DeltaSingleton  Transport = "delta-grpc"
	REST            Transport = "rest"
)

// Transports lists all transports.
var Transports = []Transport{File, Aggregated, DeltaAggregated, Singleton, DeltaSingleton, REST}

// transport returns the transport of the options.
func (o EnvoyOptions) transport() Transport { return cmp.Or(o.Transport, File) }

// sources returns the config sources of a bootstrap.
type sources interface {
	// dynamic returns the config sources of clusters and listeners.
	dynamic() *bootstrapv3.Bootstrap_DynamicResources
	// layer returns the config source of a runtime layer.
	layer(RuntimeLayer) (*corev3.ConfigSource, error)
}

// sources returns the sources for the transport. If the options are faulty, it returns nil and an error.
func (o EnvoyOptions) sources() (sources, error) {
	switch t := o.transport(); {
	case t == File:
		return o.files()
	case !slices.Contains(Transports, t):
		var names []string
		for _, known := range Transports {
			names = append(names, string(known))
		}
		return nil, fmt.Errorf("unknown transport %q: use one of %s", t, strings.Join(names, ", "))
	}
	if err := o.Server.check(); err != nil {
		return nil, err
	}
	return streams{o.Transport, o.Server.Cluster}, nil
}

// streams returns config sources that ask a server.
type streams struct {
	transport Transport
	cluster   string // the name of the cluster for the server
}

func (s streams) dynamic() *bootstrapv3.Bootstrap_DynamicResources {
	d := &bootstrapv3.Bootstrap_DynamicResources{CdsConfig: s.source(), LdsConfig: s.source()}
	if s.aggregated() {
		d.AdsConfig = s.api()
	}
	return d
}

func (s streams) layer(RuntimeLayer) (*corev3.ConfigSource, error) { return s.source(), nil }

func (s streams) aggregated() bool {
	return s.transport == Aggregated || s.transport == DeltaAggregated
}

func (s streams) source() *corev3.ConfigSource {
	if s.aggregated() {
		return &corev3.ConfigSource{
			ResourceApiVersion:    corev3.ApiVersion_V3,
			ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		}
	}
	return &corev3.ConfigSource{ResourceApiVersion: corev3.ApiVersion_V3, ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: s.api()}}
}

// api returns the config source by which Envoy asks the server.
func (s streams) api() *corev3.ApiConfigSource {
	if s.transport == REST {
		return &corev3.ApiConfigSource{
			ApiType: corev3.ApiConfigSource_REST, TransportApiVersion: corev3.ApiVersion_V3, ClusterNames: []string{s.cluster},
			// The server answers a request only after a change (long polling).
			RefreshDelay: durationpb.New(time.Second), RequestTimeout: durationpb.New(30 * time.Second),
		}
	}
	api := &corev3.ApiConfigSource{
		ApiType: corev3.ApiConfigSource_GRPC, TransportApiVersion: corev3.ApiVersion_V3,
		GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
			EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: s.cluster},
		}}},
		// The server reads the node from the first request of a stream.
		SetNodeOnFirstMessageOnly: true,
	}
	if s.transport == DeltaAggregated || s.transport == DeltaSingleton {
		api.ApiType = corev3.ApiConfigSource_DELTA_GRPC
	}
	return api
}
