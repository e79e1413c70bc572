package part

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"xdspub/diag"
	"xdspub/xds"
)

// TestBlame: a finding about an admitted resource, or about a resource that subscribes to it, takes the resource out.
func TestBlame(t *testing.T) {
	assignment := func(name string) *xds.Resource {
		return xds.ResourceOf(xds.Key{Type: xds.Endpoints, Name: name}, &endpointv3.ClusterLoadAssignment{ClusterName: name})
	}
	cluster := func(name, asks string) *xds.Resource {
		source := &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}}
		return xds.ResourceOf(xds.Key{Type: xds.Cluster, Name: name}, &clusterv3.Cluster{
			Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: source, ServiceName: asks},
		})
	}
	one, two := assignment("one"), assignment("two")
	mixed := xds.NewSnapshot([]*xds.Resource{one, two, cluster("a", "one"), cluster("b", "")})
	admitted := xds.Change{Added: []*xds.Resource{one, two}}
	for _, tt := range []struct {
		name  string
		about xds.Key
		is    diag.Severity
		want  string // the resource that is taken out
	}{
		{"the resource", two.Key, diag.Error, "two"},
		{"a subscriber", xds.Key{Type: xds.Cluster, Name: "a"}, diag.Error, "one"},
		{"a warning", two.Key, diag.Warning, ""},
		{"another resource", xds.Key{Type: xds.Cluster, Name: "b"}, diag.Error, ""},
	} {
		f := FaultsOf(nil, diag.Error)
		found := diag.List{{Severity: tt.is, Resource: diag.Resource{Type: tt.about.Type.URL(), Name: tt.about.Name}}}
		if added := f.Blame(found, diag.Error, mixed, admitted); added != (tt.want != "") || f.Has(one) != (tt.want == "one") || f.Has(two) != (tt.want == "two") {
			t.Errorf("%s: took out one %t, two %t; want %q", tt.name, f.Has(one), f.Has(two), tt.want)
		}
		if f.Blame(found, diag.Error, mixed, admitted) {
			t.Errorf("%s: took a resource out twice", tt.name)
		}
	}
}
