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
