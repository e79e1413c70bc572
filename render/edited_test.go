package render

import (
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"xdspub/diag"
	"xdspub/xds"
)

// nowhere is an Origin that knows no places.
type nowhere struct{}

func (nowhere) Range(xds.Path) diag.Range                                { return diag.Range{} }
func (nowhere) Correct(xds.Path, diag.Correction) (e diag.Edit, ok bool) { return }

// TestEditedTakesNoSpace: a Renderer keeps nothing of a resource that an edit has replaced.
func TestEditedTakesNoSpace(t *testing.T) {
	endpoints := func(weighted bool) *xds.Resource {
		r, err := xds.NewResource(&endpointv3.ClusterLoadAssignment{ClusterName: "e", Policy: &endpointv3.ClusterLoadAssignment_Policy{WeightedPriorityHealth: weighted}}, "", nowhere{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	var r Renderer
	is := endpoints(false)
	s := xds.NewSnapshot([]*xds.Resource{is})
	if _, list := r.Render(t.Context(), s, Target{EnvoyPath: "/out"}); len(list) > 0 {
		t.Fatal(list)
	}
	kept := len(r.written)
	for i := range 100 {
		edited := endpoints(i%2 == 0)
		s = s.Apply(xds.Change{Removed: []*xds.Resource{is}, Added: []*xds.Resource{edited}})
		is = edited
		if edit, ok := r.Edited(s); !ok || len(edit.Files) != 1 {
			t.Fatalf("edit %d: %v, %d files", i, ok, len(edit.Files))
		}
	}
	if len(r.written) != kept {
		t.Errorf("%d resources are kept, want %d", len(r.written), kept)
	}
}
