package render_test

import (
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"xdspub/render"
	"xdspub/xds"
)

// TestHeldOnce checks that, for a resource alone in a binary file, a watch holds the bytes of the file and no
// copy of the resource in it.
func TestHeldOnce(t *testing.T) {
	r := xds.ResourceOf(xds.Key{Type: xds.Endpoints, Name: "a"}, &endpointv3.ClusterLoadAssignment{ClusterName: "a"})
	out, list := new(render.Renderer).Render(t.Context(), xds.NewSnapshot([]*xds.Resource{r}), render.Target{EnvoyPath: "/xds", Format: render.Binary})
	if len(list) > 0 {
		t.Fatal(list)
	}
	for _, f := range out.Files {
		if f.Type != xds.Endpoints {
			continue
		}
		canonical, err := r.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Data {
			if &f.Data[i] == &canonical[0] {
				return
			}
		}
	}
	t.Error("the canonical form is held beside the file")
}
