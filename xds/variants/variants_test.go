package variants_test

import (
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"xdspub/xds"
	"xdspub/xds/params"
	"xdspub/xds/variants"
)

// TestAfter: after each change a Tree is that of the Snapshot alone.
func TestAfter(t *testing.T) {
	resource := func(name string, of params.Constraints) *xds.Resource {
		r := xds.ResourceOf(xds.Key{Type: xds.Cluster, Name: name}, &clusterv3.Cluster{Name: name})
		r.For = of
		return r
	}
	plain, again := resource("plain", params.Constraints{}), resource("plain", params.Constraints{})
	prod, rest := resource("web", params.Value("env", "prod")), resource("web", params.Not(params.Value("env", "prod")))
	s := xds.NewSnapshot([]*xds.Resource{plain})
	var tree *variants.Tree
	for i, c := range []xds.Change{
		{}, {Added: []*xds.Resource{prod}}, {Removed: []*xds.Resource{plain}, Added: []*xds.Resource{again}},
		{Added: []*xds.Resource{rest}}, {Removed: []*xds.Resource{prod, rest}}, {Removed: []*xds.Resource{again}},
	} {
		s = s.Apply(c)
		tree = tree.After(s)
		if want := variants.Of(s); tree.All() != s || !slices.Equal(tree.Keys(), want.Keys()) {
			t.Errorf("change %d: %v, want %v", i, tree.Keys(), want.Keys())
		}
	}
}

// TestClientOf: a client says of itself what it is set to say to the authority of a name, in whatever way that is
// written, and what it says to all others for any other name.
func TestClientOf(t *testing.T) {
	client := variants.Client{
		Parameters:  params.Parameters{"env": "prod"},
		Authorities: map[string]params.Parameters{"a.example": {"region": "eu"}, "b:é": {}},
	}
	const typ = "/envoy.config.cluster.v3.Cluster/web"
	for name, want := range map[string]string{
		"web":                           "env=prod",
		"a.example":                     "env=prod",
		"xdstp://a.example" + typ:       "region=eu",
		"xdstp://a%2Eexample" + typ:     "region=eu",
		"xdstp://b%3A%C3%A9" + typ:      "no parameters",
		"xdstp://a.example.org" + typ:   "env=prod",
		"xdstp://a.example":             "env=prod", // no such name
		"xdstp://other/a.example" + typ: "env=prod",
	} {
		if got := client.Of(xds.Key{Type: xds.Cluster, Name: name}).String(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if other := (variants.Client{Parameters: client.Parameters}); other.Equal(client) || !client.Equal(client) {
		t.Error("clients that say something else to an authority are equal")
	}
	if got := client.String(); got != "env=prod, and to the authority a.example region=eu, and to the authority b:é no parameters" {
		t.Error(got)
	}
}
