package xds_test

import (
	"bytes"
	"runtime"
	"slices"
	"testing"
	"weak"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"xdspub/xds"
)

// TestUnload unloads a resource, runs the garbage collector, and compares the results of all methods with those
// before.
func TestUnload(t *testing.T) {
	payload, err := anypb.New(durationpb.New(5))
	if err != nil {
		t.Fatal(err)
	}
	of := func(a *anypb.Any) *clusterv3.Cluster {
		return &clusterv3.Cluster{
			Name: "c", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{}}},
			Metadata:         &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{"x": a}},
		}
	}
	for _, c := range []struct {
		name    string
		payload *anypb.Any
		stays   bool
	}{
		{"an EDS cluster", payload, false},
		// Marshal writes the usual URL instead of this one, which a rule reports.
		{"another type URL", &anypb.Any{TypeUrl: "example.com/google.protobuf.Duration", Value: payload.GetValue()}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := of(c.payload)
			want, held := proto.CloneOf(m), weak.Make(m)
			r := xds.ResourceOf(xds.Key{Type: xds.Cluster, Name: "c"}, m)
			version, asks, secret := r.Version(), len(r.Facts().Subscriptions), r.HoldsSecret()
			r.Unload()
			r.Unload()
			runtime.GC()
			if stays := held.Value() != nil; stays != c.stays {
				t.Errorf("the message stays: %t", stays)
			}
			if !r.AsksFor(xds.Endpoints) || r.AsksFor(xds.Secret) || r.UsesSingletons() {
				t.Error("it asks for others, or does not ask")
			}
			if !proto.Equal(r.Message(), want) {
				t.Errorf("the message is %v", r.Message())
			}
			if len(r.Facts().Subscriptions) != asks || r.HoldsSecret() != secret || r.Version() != version {
				t.Errorf("the facts are %v, the version %s", r.Facts(), r.Version())
			}
			runtime.KeepAlive(r)
		})
	}
}

// TestHeldIn: a resource keeps its canonical form as a part of data if data contains the form.
func TestHeldIn(t *testing.T) {
	r := xds.ResourceOf(xds.Key{Type: xds.Cluster, Name: "c"}, &clusterv3.Cluster{Name: "c"})
	r.HeldIn([]byte("before anybody asked"))
	want, err := r.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	r.HeldIn([]byte("others"))
	if is, _ := r.Canonical(); &is[0] != &want[0] {
		t.Error("it is held in data that has it not")
	}
	data := slices.Concat([]byte("around"), want, []byte("it"))
	r.HeldIn(data)
	is, _ := r.Canonical()
	if !bytes.Equal(is, want) || &is[0] != &data[len("around")] || cap(is) != len(is) {
		t.Errorf("it is %q of %d bytes, held elsewhere or with what is behind", is, cap(is))
	}
}
