package render

import (
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"xdspub/xds"
)

// TestFolderCollisions checks that a resource with the folder of another resource is an error, and the message.
func TestFolderCollisions(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"web", "Web", "differ only in letter case"},
		{"web", "web", `endpoint assignment "web" is defined twice`},
		{"web", "other", ""},
	} {
		var resources []*xds.Resource
		for _, name := range []string{tt.a, tt.b} {
			r, err := xds.NewResource(&endpointv3.ClusterLoadAssignment{ClusterName: name}, "", nowhere{})
			if err != nil {
				t.Fatal(err)
			}
			resources = append(resources, r)
		}
		_, list := new(Renderer).Render(t.Context(), xds.NewSnapshot(resources), Target{EnvoyPath: "/out"})
		if tt.want == "" && len(list) > 0 || tt.want != "" && (len(list) != 1 || !strings.Contains(list[0].Message, tt.want)) {
			t.Errorf("%q and %q: %v, want %q", tt.a, tt.b, list, tt.want)
		}
	}
}
