package rules_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/source/load"
	"xdspub/tools/certs"
	"xdspub/validate"
	"xdspub/validate/rules"
	"xdspub/xds"
)

// TestJudge makes random changes to a Snapshot of resources from the examples of all rules. A Judge that has seen
// the earlier Snapshots must find the same as a new Judge. Resources are added, removed, restored and read again,
// may share names, and time passes.
func TestJudge(t *testing.T) {
	var trees []string
	for _, rule := range rules.All {
		archive, dir := write(t, rule.Code, filepath.Join(t.TempDir(), rule.Code))
		kinds, _ := examples(t, archive)
		for _, names := range kinds {
			for _, name := range names {
				if !exists(filepath.Join(dir, name, "boot.yaml")) {
					trees = append(trees, filepath.Join(dir, name))
				}
			}
		}
	}
	read := func(tree string) []*xds.Resource {
		loaded, err := load.New(load.Options{}).Load(t.Context(), tree)
		if err != nil {
			t.Fatal(err)
		}
		return loaded.Resources()
	}
	pool := make(map[*xds.Type][]*xds.Resource)
	for _, tree := range trees {
		for _, r := range read(tree) {
			pool[r.Type] = append(pool[r.Type], r)
		}
	}
	steps := 25
	if testing.Short() {
		steps = 5
	}
	for range 2 {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		is := make(map[string][]*xds.Resource) // the resources by their tree
		for _, tree := range trees {
			if strings.Contains(tree, "expired-certificate") || strings.Contains(tree, "ocsp-staple") {
				is[tree] = read(tree) // otherwise few findings would depend on the time
			}
		}
		judge := validate.NewJudge(rules.All)
		codes := validate.Options{Profiles: validate.Profiles}.Listed(rules.All)
		var last *xds.Snapshot
		o := validate.Options{Now: certs.Now, Enable: []string{"unused-resource"}}
		for step := range steps {
			for range 1 + random.IntN(8) {
				tree := trees[random.IntN(len(trees))]
				switch resources := is[tree]; {
				case len(resources) == 0:
					is[tree] = read(tree)
				case random.IntN(3) == 0:
					is[tree] = read(tree) // new values with the same content
				default: // remove one resource
					i := random.IntN(len(resources))
					is[tree] = append(append([]*xds.Resource(nil), resources[:i]...), resources[i+1:]...)
				}
			}
			switch random.IntN(9) {
			case 0, 1, 2:
				o.Now = time.Date([]int{2019, 2020, 2025, 2098, 2110}[random.IntN(5)], 6, 1, 0, 0, 0, 0, time.UTC)
			case 3:
				o.Incomplete = xds.Types[:random.IntN(len(xds.Types)+1)]
			case 4:
				o.Disable = []string{codes[random.IntN(len(codes))]}
			case 5:
				o.Profiles = validate.Profiles[random.IntN(3):]
			}
			var all []*xds.Resource
			for _, tree := range trees {
				all = append(all, is[tree]...)
			}
			s := xds.NewSnapshot(all)
			if last != nil && random.IntN(2) == 0 { // change only the content of some resources
				s = last.Apply(edited(random, last, pool))
			}
			last = s
			got, want := judge.Run(t.Context(), s, o), validate.Run(t.Context(), s, rules.All, o)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, step %d, %d resources (-cold +warm):\n%s", seed, step, s.Len(), strings.Join(strings.SplitAfterN(diff, "\n", 40)[:min(39, strings.Count(diff, "\n"))], ""))
			}
		}
	}
}

// TestJudgeEdits changes the resources of each example step by step, and goes back: some get the content of other
// resources of their type, some are removed, and some are added, even with the name of another. The test checks
// that each step is judged as an edit.
func TestJudgeEdits(t *testing.T) {
	pool := make(map[*xds.Type][]*xds.Resource)
	var trees [][]*xds.Resource
	for _, rule := range rules.All {
		archive, dir := write(t, rule.Code, filepath.Join(t.TempDir(), rule.Code))
		kinds, _ := examples(t, archive)
		for _, names := range kinds {
			for _, name := range names {
				loaded, err := load.New(load.Options{}).Load(t.Context(), filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				trees = append(trees, loaded.Resources())
				for _, r := range loaded.Resources() {
					pool[r.Type] = append(pool[r.Type], r)
				}
			}
		}
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	o := validate.Options{Now: certs.Now, Enable: []string{"unused-resource"}}
	// An edit does not concern a runtime layer that nothing refers to.
	bystander, err := xds.NewResource(&runtimev3.Runtime{Name: "bystander"}, "", pool[xds.Runtime][0].Origin)
	if err != nil {
		t.Fatal(err)
	}
	wholes := 0
	counts := &validate.Rule{Code: "counts", Resource: func(p *validate.LookupPass) {
		if p.Resource == bystander {
			wholes++
		}
	}}
	all := append(slices.Clone(rules.All), counts)
	for _, tree := range trees {
		if testing.Short() && random.IntN(10) > 0 || len(tree) == 0 {
			continue
		}
		judge, s := validate.NewJudge(all), xds.NewSnapshot(append(slices.Clone(tree), bystander))
		judge.Run(t.Context(), s, o)
		wholes = 0
		var back []xds.Change
		for range 16 {
			c := changed(random, s, pool, bystander)
			if n := len(back); n > 0 && random.IntN(2) == 0 {
				c, back = back[n-1], back[:n-1]
			} else {
				back = append(back, xds.Change{Removed: c.Added, Added: c.Removed})
			}
			s = s.Apply(c)
			if diff := cmp.Diff(validate.Run(t.Context(), s, rules.All, o), judge.Run(t.Context(), s, o)); diff != "" {
				t.Fatalf("seed %d, after a change %+v (-cold +warm):\n%s", seed, c, diff)
			}
		}
		if wholes > 0 {
			t.Errorf("%d of the changes to %v were judged as a whole", wholes, tree)
		}
	}
}

// changed returns a random Change that does not concern the resource alone.
func changed(random *rand.Rand, s *xds.Snapshot, pool map[*xds.Type][]*xds.Resource, alone *xds.Resource) (c xds.Change) {
	all := slices.DeleteFunc(s.All(), func(r *xds.Resource) bool { return r == alone })
	for range 1 + random.IntN(3) {
		switch kind := random.IntN(4); {
		case kind == 0 && len(all) > 0: // remove one resource
			i := random.IntN(len(all))
			c.Removed, all = append(c.Removed, all[i]), slices.Delete(all, i, i+1)
		case kind == 1: // add one resource, which may have the name of another
			of := pool[xds.Types[random.IntN(len(xds.Types))]]
			like := of[random.IntN(len(of))]
			name := like.Name
			if named := s.Of(like.Type); len(named) > 0 && random.IntN(3) == 0 {
				name = named[random.IntN(len(named))].Name
			}
			if r := renamed(like, name); r.Key != alone.Key {
				c.Added = append(c.Added, r)
			}
		case len(all) > 0: // edit one resource
			i := random.IntN(len(all))
			of := pool[all[i].Type]
			c.Removed, c.Added = append(c.Removed, all[i]), append(c.Added, renamed(of[random.IntN(len(of))], all[i].Name))
			all = slices.Delete(all, i, i+1)
		}
	}
	return c
}

// renamed returns a resource with another name and the content of r.
func renamed(r *xds.Resource, name string) *xds.Resource {
	m := proto.Clone(r.Message()).ProtoReflect()
	if r.Type.Asked != xds.InGroups { // the wrapper names a resource in a group
		m.Set(m.Descriptor().Fields().ByName(r.Type.Name), protoreflect.ValueOfString(name))
	}
	next, err := xds.NewResource(m.Interface(), name, r.Origin)
	if err != nil {
		panic(err)
	}
	return next
}

// edited returns a Change in which some resources get the content of other resources of their type. It does not
// change resources that share a Key.
func edited(random *rand.Rand, s *xds.Snapshot, pool map[*xds.Type][]*xds.Resource) (c xds.Change) {
	all := s.All()
	had := make(map[xds.Key]bool)
	for range 1 + random.IntN(4) {
		r := all[random.IntN(len(all))]
		if len(s.Named(r.Key)) > 1 || had[r.Key] || r.Type == xds.VirtualHost { // the wrapper of such a resource has its name
			continue
		}
		had[r.Key] = true
		like := pool[r.Type][random.IntN(len(pool[r.Type]))]
		c.Removed, c.Added = append(c.Removed, r), append(c.Added, renamed(like, r.Name))
	}
	return c
}
