package render

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"xdspub/diag"
	"xdspub/tools/edits"
	"xdspub/xds"
)

// nowhere is an Origin without places.
type nowhere struct{}

func (nowhere) Range(xds.Path) diag.Range          { return diag.Range{} }
func (nowhere) InWrapper(xds.Path) (at diag.Range) { return }
func (nowhere) Constraints(bool) (at diag.Range)   { return }

func (nowhere) Correct(xds.Path, diag.Correction) (e diag.Edit, ok bool) { return }

func (nowhere) Shows(xds.Path) bool { return false }

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

// contents has the possible contents of each resource of TestEdited.
var contents = func() (list [][]string) {
	hcm := `{"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s, %s}`
	for n := range 3 {
		cluster := fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c%d, connect_timeout: %%s}`, n)
		listener := fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: l%d, filter_chains: [{filters: [{name: hcm, typed_config: %s}]}]}`, n, hcm)
		scoped := `scoped_routes: {name: s, scope_key_builder: {fragments: [{}]}, rds_config_source: {ads: {}}, scoped_rds: {scoped_rds_config_source: {ads: {}}}}`
		list = append(list,
			[]string{fmt.Sprintf(cluster, "1s"), fmt.Sprintf(cluster, "2s"), fmt.Sprintf(cluster, "1s, type: EDS"), fmt.Sprintf(cluster, "2s, type: EDS, health_checks: [{}]")},
			[]string{fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: c%d}`, n)},
			[]string{fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: r%d}`, n)},
			[]string{fmt.Sprintf(`{"@type": type.googleapis.com/envoy.service.runtime.v3.Runtime, name: y%d, layer: {a: 1}}`, n), fmt.Sprintf(`{"@type": type.googleapis.com/envoy.service.runtime.v3.Runtime, name: y%d, layer: {a: 1.5}}`, n)},
			[]string{
				fmt.Sprintf(`{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: t%d, generic_secret: {secret: {filename: /x}}}`, n),
				fmt.Sprintf(`{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: t%d, generic_secret: {secret: {inline_string: x}}}`, n),
			},
			[]string{fmt.Sprintf(listener, fmt.Sprintf("rds: {route_config_name: r%d, config_source: {ads: {}}}", n)), fmt.Sprintf(listener, scoped)},
		)
	}
	const other = `{"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: R0}` // its folder collides with the folder of r0
	return append(list, []string{other}, []string{`{"@type": type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration, name: s, route_configuration_name: r0, key: {fragments: [{string_key: k}]}}`})
}()

// TestEdited checks the Edits of random changes. Applied to the Output before, which may have been trimmed
// since, an Edit gives the Output of a new Renderer.
func TestEdited(t *testing.T) {
	edited, whole, trimmed := 0, 0, 0
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		target := Target{EnvoyPath: "/out", Format: Formats[random.IntN(len(Formats))], InlineEndpoints: random.IntN(2) == 0, InlineRoutes: random.IntN(2) == 0}
		var r Renderer
		s, out, watches := xds.NewSnapshot(nil), &Output{}, []string(nil)
		for range 30 {
			s = s.Apply(edits.Random(random, s, contents))
			target.Retired, target.EmptyLayers = nil, nil
			for _, f := range out.Files {
				switch f.Type {
				case xds.Cluster:
					target.Retired = slices.DeleteFunc(slices.Clone(f.Resources), func(c *xds.Resource) bool { return s.Lookup(xds.Cluster, c.Name) != nil })
				case xds.Runtime:
					target.EmptyLayers = append(target.EmptyLayers, f.Name)
				}
			}
			want, list := new(Renderer).Render(t.Context(), s, target)
			edit, ok := r.Edited(s)
			if ok {
				edited++
				out = edit.of(out)
				if len(list) > 0 {
					t.Fatalf("%d: Edited does not say: %v", seed, list)
				}
				if diff := cmp.Diff(want, out, cmpopts.IgnoreFields(File{}, "Type", "Resources")); diff != "" {
					t.Fatalf("%d (-Render +Edited):\n%s", seed, diff)
				}
				gone := slices.DeleteFunc(slices.Clone(watches), func(name string) bool { return slices.Contains(out.Watches, name) })
				if diff := cmp.Diff(gone, edit.Gone, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("%d: watches that are gone (-want +got):\n%s", seed, diff)
				}
				watches = out.Watches
				if len(target.Retired) > 0 {
					trimmed++
					target.Retired = target.Retired[random.IntN(len(target.Retired)):][1:]
					watches = trim(t, &r, s, out, target)
				}
				continue
			}
			whole++
			if out, _ = r.Render(t.Context(), s, target); out == nil {
				out = &Output{}
			}
			watches = out.Watches
		}
	}
	if edited < whole/2 || trimmed < 10 { // the findings of some trees need a Render
		t.Errorf("%d edits, %d others, %d trims", edited, whole, trimmed)
	}
}

// TestTrimmedOthers checks that Edited gives up after a trim of clusters that the Renderer has not written.
func TestTrimmedOthers(t *testing.T) {
	cluster := func() *xds.Resource {
		return xds.ResourceOf(xds.Key{Type: xds.Cluster, Name: "c"}, &clusterv3.Cluster{Name: "c"})
	}
	var r Renderer
	s := xds.NewSnapshot([]*xds.Resource{cluster()})
	if _, list := r.Render(t.Context(), s, Target{EnvoyPath: "/out", Format: Binary}); len(list) > 0 {
		t.Fatal(list)
	}
	if _, err := r.Trimmed(Binary, []*xds.Resource{cluster()}); err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Edited(s.Apply(xds.Change{Removed: s.All()})); ok {
		t.Error("Edited tells the difference")
	}
}

// trim trims the clusters that to retires from out, the Output of s, and returns the path subscriptions of the
// result.
func trim(t *testing.T, r *Renderer, s *xds.Snapshot, out *Output, to Target) (watches []string) {
	t.Helper()
	at := slices.IndexFunc(out.Files, func(f File) bool { return f.Type == xds.Cluster })
	stay := slices.DeleteFunc(slices.Clone(out.Files[at].Resources), func(c *xds.Resource) bool {
		return s.Lookup(xds.Cluster, c.Name) == nil && !slices.Contains(to.Retired, c)
	})
	want, list := new(Renderer).Render(t.Context(), s, to)
	if want == nil {
		t.Fatal(list)
	}
	f, err := r.Trimmed(to.Format, stay)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Files[at], f, cmpopts.IgnoreFields(File{}, "Type", "Resources")); diff != "" {
		t.Fatalf("(-Render +Trimmed):\n%s", diff)
	}
	out.Files[at] = f
	return want.Watches
}

// of returns the Output that the Edit makes of the Output before.
func (e Edit) of(before *Output) *Output {
	is := &Output{ID: e.ID, Watches: e.Watches}
	for _, f := range before.Files {
		if !slices.Contains(e.Removed, f.Path) && !slices.ContainsFunc(e.Files, func(o File) bool { return o.Path == f.Path }) {
			is.Files = append(is.Files, f)
		}
	}
	is.Files = append(is.Files, e.Files...)
	slices.SortFunc(is.Files, inOrder)
	return is
}
