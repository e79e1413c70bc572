package validate

import (
	"context"
	"fmt"
	"slices"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

// TestEditsTakeNoSpace: a Judge forgets a resource that an edit replaces, and keeps one result of a resource that
// it judges again.
func TestEditsTakeNoSpace(t *testing.T) {
	index := NewIndex([]*xds.Type{xds.Endpoints}, func(_ *xds.Snapshot, r *xds.Resource, add func(string, *xds.Resource)) {
		add("one", r)
		add("two", r)
	})
	looks := &Rule{Code: "looks", Messages: []protoreflect.FullName{"envoy.config.route.v3.RouteConfiguration", "envoy.config.endpoint.v3.ClusterLoadAssignment"}, Lookup: func(p *LookupPass, n *xds.Node) {
		index.Lookup(p.Snapshot, "one")
		index.Lookup(p.Snapshot, "two")
		p.Snapshot.Lookup(xds.Endpoints, "e")
		p.Snapshot.Of(xds.Endpoints)
		p.Report(Finding{Path: n.Path(), Message: "it is there"})
	}}
	resource := func(m proto.Message) *xds.Resource {
		r, err := xds.NewResource(m, "", nowhere{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	endpoints := resource(&endpointv3.ClusterLoadAssignment{ClusterName: "e"})
	s := xds.NewSnapshot([]*xds.Resource{resource(&routev3.RouteConfiguration{Name: "r"}), endpoints})
	j := NewJudge([]*Rule{looks})
	j.Run(t.Context(), s, Options{})
	for i := range 100 {
		edited := resource(&endpointv3.ClusterLoadAssignment{ClusterName: "e", Policy: &endpointv3.ClusterLoadAssignment_Policy{WeightedPriorityHealth: i%2 == 0}})
		s = s.Apply(xds.Change{Removed: []*xds.Resource{endpoints}, Added: []*xds.Resource{edited}})
		endpoints = edited
		memory := j.memory
		if list := j.Run(t.Context(), s, Options{}); len(list) != 2 {
			t.Fatalf("after edit %d: %v", i, list)
		}
		if j.memory != memory {
			t.Fatalf("edit %d was not judged as one", i)
		}
	}
	if len(j.kept) != 2 || len(j.memory.found) != 2 || len(j.memory.askers) != 4 {
		t.Errorf("%d resources, %d with findings, %d questions are kept, want 2, 2, 4", len(j.kept), len(j.memory.found), len(j.memory.askers))
	}
	for q, askers := range j.memory.askers {
		if len(askers) != 2 {
			t.Errorf("%d resources have asked %+v, want 2", len(askers), q)
		}
	}
}

// TestEditStopped: if the context of a Run ends, the next Run finds what this Run has left out.
func TestEditStopped(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	ends := &Rule{Code: "ends", Snapshot: func(p *SnapshotPass) {
		if p.Snapshot.Lookup(xds.Endpoints, "e").Message().(*endpointv3.ClusterLoadAssignment).Policy != nil {
			end()
		}
	}}
	finds := &Rule{Code: "finds", Snapshot: func(p *SnapshotPass) {
		if r := p.Snapshot.Lookup(xds.Endpoints, "e"); r.Message().(*endpointv3.ClusterLoadAssignment).Policy != nil {
			p.Report(Finding{Resource: r, Message: "it has a policy"})
		}
	}}
	resource := func(m proto.Message) *xds.Resource {
		r, err := xds.NewResource(m, "", nowhere{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	plain := resource(&endpointv3.ClusterLoadAssignment{ClusterName: "e"})
	s := xds.NewSnapshot([]*xds.Resource{plain})
	j := NewJudge([]*Rule{ends, finds})
	j.Run(ctx, s, Options{})
	s = s.Apply(xds.Change{Removed: []*xds.Resource{plain}, Added: []*xds.Resource{resource(&endpointv3.ClusterLoadAssignment{ClusterName: "e", Policy: &endpointv3.ClusterLoadAssignment_Policy{}})}})
	j.Run(ctx, s, Options{})
	if list := j.Run(t.Context(), s, Options{}); len(list) != 1 {
		t.Errorf("after a Run that was stopped: %v", list)
	}
}

// TestStoppedWithin: if the context ends while Run judges a huge resource, Run does not judge the rest of the
// resource. The next Run judges all of it.
func TestStoppedWithin(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	seen := 0
	sees := &Rule{Code: "sees", Messages: []protoreflect.FullName{"envoy.config.route.v3.Route"}, Node: func(p *Pass, n *xds.Node) {
		end()
		seen++
		p.Report(Finding{Path: n.Path(), Message: "it is there"})
	}}
	const routes = 50_000
	r, err := xds.NewResource(&routev3.RouteConfiguration{Name: "r", VirtualHosts: []*routev3.VirtualHost{{Name: "v", Routes: slices.Repeat([]*routev3.Route{{}}, routes)}}}, "", nowhere{})
	if err != nil {
		t.Fatal(err)
	}
	s, j := xds.NewSnapshot([]*xds.Resource{r}), NewJudge([]*Rule{sees})
	j.Run(ctx, s, Options{})
	if seen > routes/10 {
		t.Errorf("%d of %d routes were judged though the context had ended", seen, routes)
	}
	if list := j.Run(t.Context(), s, Options{}); len(list) != routes {
		t.Errorf("after a Run that was stopped: %d findings, want %d", len(list), routes)
	}
}

// TestStopped: if the context ends while Run judges resources, Run returns. The next Run finds everything.
func TestStopped(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	finds := &Rule{Code: "finds", Messages: []protoreflect.FullName{"envoy.config.endpoint.v3.ClusterLoadAssignment"}, Node: func(p *Pass, n *xds.Node) {
		end()
		p.Report(Finding{Path: n.Path(), Message: "it is there"})
	}}
	var resources []*xds.Resource
	for i := range 1000 {
		r, err := xds.NewResource(&endpointv3.ClusterLoadAssignment{ClusterName: fmt.Sprint(i)}, "", nowhere{})
		if err != nil {
			t.Fatal(err)
		}
		resources = append(resources, r)
	}
	s := xds.NewSnapshot(resources)
	j := NewJudge([]*Rule{finds})
	if list := j.Run(ctx, s, Options{}); len(list) == len(resources) {
		t.Error("a Run whose context has ended went on")
	}
	if list := j.Run(t.Context(), s, Options{}); len(list) != len(resources) {
		t.Errorf("after a Run that was stopped: %d findings, want %d", len(list), len(resources))
	}
}

// TestEditNames: a new resource changes the answers to the lookups of other resources: by its name, by an Index, by
// similarity, and by its Key. After the resource is removed, the answers are the old ones again.
func TestEditNames(t *testing.T) {
	index := NewIndex([]*xds.Type{xds.Endpoints}, func(_ *xds.Snapshot, r *xds.Resource, add func(string, *xds.Resource)) { add("all", r) })
	asks := func(code string, answer func(View) any) []*Rule {
		return []*Rule{{Code: code, Messages: []protoreflect.FullName{"envoy.config.route.v3.RouteConfiguration"}, Lookup: func(p *LookupPass, n *xds.Node) {
			p.Report(Finding{Message: fmt.Sprint(answer(p.Snapshot))})
		}}}
	}
	shares := &Rule{Code: "shares", Resource: func(p *LookupPass) {
		p.Report(Finding{Message: fmt.Sprint(len(p.Namesakes()), p.IsFirst())})
	}}
	resource := func(m proto.Message) *xds.Resource {
		r, err := xds.NewResource(m, "", nowhere{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	endpoints := func(name string) *xds.Resource {
		return resource(&endpointv3.ClusterLoadAssignment{ClusterName: name})
	}
	s := xds.NewSnapshot([]*xds.Resource{resource(&routev3.RouteConfiguration{Name: "r"}), endpoints("other"), endpoints("b")})
	for _, rules := range [][]*Rule{ // each lookup has its own Judge, so no other lookup runs the rule again
		asks("index", func(v View) any { return len(index.Lookup(v, "all")) }),
		asks("first", func(v View) any { r, _ := index.First(v, "all"); return r.Name }),
		asks("nearest", func(v View) any { return v.Nearest(xds.Endpoints, "name") }),
		asks("presence", func(v View) any { return v.Has(xds.Endpoints, "nam") }),
		asks("named", func(v View) any { return len(v.Named(xds.Endpoints, "nam")) }),
		asks("resource", func(v View) any { return v.Lookup(xds.Endpoints, "nam") }),
		asks("type", func(v View) any { return len(v.Of(xds.Endpoints)) }),
		{shares},
	} {
		s, j := s, NewJudge(rules)
		j.Run(t.Context(), s, Options{})
		memory := j.memory
		var came []*xds.Resource
		step := func(c xds.Change) {
			s = s.Apply(c)
			if diff := cmp.Diff(Run(t.Context(), s, rules, Options{}), j.Run(t.Context(), s, Options{})); diff != "" {
				t.Errorf("%s, after %+v (-cold +warm):\n%s", rules[0].Code, c, diff)
			}
			if j.memory != memory {
				t.Error("a change was not judged as an edit")
			}
		}
		for _, name := range []string{"nam", "a", "nam", "z", "names"} {
			came = append(came, endpoints(name))
			step(xds.Change{Added: came[len(came)-1:]})
		}
		for _, r := range came {
			step(xds.Change{Removed: []*xds.Resource{r}})
		}
	}
}
