package xds_test

import (
	"slices"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"xdspub/xds"
)

// TestDiffering: Differing returns the innermost differing fields of messages that both resources have, also in
// payloads.
func TestDiffering(t *testing.T) {
	payload := func(m proto.Message) *anypb.Any {
		a, err := anypb.New(m)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	socket := func(m proto.Message) *corev3.TransportSocket {
		return &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: payload(m)}}
	}
	a := &clusterv3.Cluster{Name: "web", ConnectTimeout: durationpb.New(time.Second), TransportSocket: socket(&tlsv3.UpstreamTlsContext{Sni: "a"})}
	for name, c := range map[string]struct {
		edit func(b *clusterv3.Cluster)
		want []xds.Path
	}{
		"nothing":         {func(*clusterv3.Cluster) {}, nil},
		"one value":       {func(b *clusterv3.Cluster) { b.ConnectTimeout = durationpb.New(5 * time.Second) }, []xds.Path{"connect_timeout"}},
		"one is not set":  {func(b *clusterv3.Cluster) { b.ConnectTimeout = nil }, []xds.Path{"connect_timeout"}},
		"in a payload":    {func(b *clusterv3.Cluster) { b.TransportSocket = socket(&tlsv3.UpstreamTlsContext{Sni: "b"}) }, []xds.Path{"transport_socket.typed_config.sni"}},
		"another payload": {func(b *clusterv3.Cluster) { b.TransportSocket = socket(&tlsv3.DownstreamTlsContext{}) }, []xds.Path{"transport_socket.typed_config"}},
		"damaged":         {func(b *clusterv3.Cluster) { b.TransportSocket.GetTypedConfig().Value = []byte{255} }, []xds.Path{"transport_socket.typed_config"}},
		"in a list": {func(b *clusterv3.Cluster) {
			b.Filters = []*clusterv3.Filter{{Name: "b"}}
		}, []xds.Path{"filters"}},
		"several": {func(b *clusterv3.Cluster) {
			b.ConnectTimeout, b.AltStatName, b.LbPolicy = nil, "b", clusterv3.Cluster_RANDOM
		}, []xds.Path{"alt_stat_name", "connect_timeout"}},
	} {
		b := proto.CloneOf(a)
		c.edit(b)
		got := xds.ResourceOf(xds.Key{Type: xds.Cluster, Name: "web"}, a).Differing(xds.ResourceOf(xds.Key{Type: xds.Cluster, Name: "web"}, b), 2)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	one, two := &clusterv3.Cluster{Filters: []*clusterv3.Filter{{Name: "a"}, {Name: "b"}}}, &clusterv3.Cluster{Filters: []*clusterv3.Filter{{Name: "a"}, {Name: "c"}}}
	if got := xds.ResourceOf(xds.Key{}, one).Differing(xds.ResourceOf(xds.Key{}, two), 9); !slices.Equal(got, []xds.Path{"filters[1].name"}) {
		t.Errorf("in an element: %v", got)
	}
}
