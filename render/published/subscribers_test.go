package published_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/envoy"
	"xdspub/render"
	"xdspub/render/published"
	"xdspub/xds"
)

// TestSubscribersFollow adds and removes clusters, listeners and layers at random, and checks that a Reader has
// the subscriptions that a new Reader finds.
func TestSubscribersFollow(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	source := func(of *xds.Type, name string) *corev3.ConfigSource {
		return &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{Path: "/xds/" + render.JSON.Path(of, name)}}}
	}
	cluster := func(name string) proto.Message {
		return &clusterv3.Cluster{
			Name: name, AltStatName: []string{"", "shared"}[random.IntN(2)],
			ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{ServiceName: "service", EdsConfig: source(xds.Endpoints, []string{"service", name}[random.IntN(2)])},
		}
	}
	listener := func(name string) proto.Message {
		routes := fmt.Sprint(random.IntN(3))
		manager, err := anypb.New(&hcmv3.HttpConnectionManager{RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{RouteConfigName: routes, ConfigSource: source(xds.RouteConfiguration, routes)}}})
		if err != nil {
			t.Fatal(err)
		}
		return &listenerv3.Listener{Name: name, FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{Name: "http", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: manager}}}}}}
	}
	next := func(was []*xds.Resource, of *xds.Type, message func(string) proto.Message) (is []*xds.Resource) {
		byName := make(map[string]*xds.Resource)
		for _, r := range was {
			byName[r.Name] = r
		}
		for i := range 8 {
			name := fmt.Sprint(i)
			r := byName[name]
			switch random.IntN(8) {
			case 0:
				r = nil
			case 1, 2:
				r = xds.ResourceOf(xds.Key{Type: of, Name: name}, message(name))
			}
			if r != nil {
				is = append(is, r)
			}
		}
		return is
	}
	expect := func(s *published.Subscribers) (list []envoy.Subscription) {
		for _, sub := range s.All {
			list = append(list, sub.Expect("v", false))
		}
		return list
	}
	o := published.Options{Dir: t.TempDir(), EnvoyPath: "/xds"}
	follows := published.New(o)
	var clusters, listeners []*xds.Resource
	shared := 0
	for range 300 {
		clusters, listeners = next(clusters, xds.Cluster, cluster), next(listeners, xds.Listener, listener)
		layers := []string{"a", "b"}[:random.IntN(3)]
		before := expect(published.New(o).Subscribers(clusters, listeners, layers))
		subs := follows.Subscribers(clusters, listeners, layers)
		if diff := cmp.Diff(before, expect(subs)); diff != "" {
			t.Fatalf("subscriptions (-found anew +followed):\n%s", diff)
		}
		for _, sub := range subs.All {
			if to := subs.To(map[string]bool{sub.File: true}); !subs.Shares(sub) || len(to) == 0 {
				t.Fatalf("%s: %d subscriptions to it, shared: %v", sub.File, len(to), subs.Shares(sub))
			} else if len(to) > 1 {
				shared++
			}
		}
	}
	if shared == 0 {
		t.Error("no two clusters had one file")
	}
}
