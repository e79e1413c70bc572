package rules_test

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/internal/certs"
	"xdspub/load"
	"xdspub/validate"
	"xdspub/validate/rules"
	"xdspub/xds"
)

// TestJudge makes random changes to a Snapshot of resources from the examples of all
// rules. A Judge that has seen those before finds what one finds that has seen nothing:
// whatever comes, goes, comes back or is read anew, beside others of its name, as time
// goes by.
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
		is := make(map[string][]*xds.Resource) // by tree
		for _, tree := range trees {
			if strings.Contains(tree, "expired-certificate") || strings.Contains(tree, "ocsp-staple") {
				is[tree] = read(tree) // else few findings depend on the time
			}
		}
		judge := validate.NewJudge(rules.All)
		var last *xds.Snapshot
		o := validate.Options{Now: certs.Now, Enable: []string{"unused-resource"}}
		for step := range steps {
			for range 1 + random.IntN(8) {
				tree := trees[random.IntN(len(trees))]
				switch resources := is[tree]; {
				case len(resources) == 0:
					is[tree] = read(tree)
				case random.IntN(3) == 0:
					is[tree] = read(tree) // other values, the same content
				default: // one goes
					i := random.IntN(len(resources))
					is[tree] = append(append([]*xds.Resource(nil), resources[:i]...), resources[i+1:]...)
				}
			}
			switch random.IntN(8) {
			case 0, 1, 2:
				o.Now = time.Date([]int{2019, 2020, 2025, 2098, 2110}[random.IntN(5)], 6, 1, 0, 0, 0, 0, time.UTC)
			case 3:
				o.Partial = !o.Partial
			case 4:
				o.Disable = []string{rules.All[random.IntN(len(rules.All))].Code}
			}
			var all []*xds.Resource
			for _, tree := range trees {
				all = append(all, is[tree]...)
			}
			s := xds.NewSnapshot(all)
			if last != nil && random.IntN(2) == 0 { // only the content of some resources changes
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

// TestJudgeEdits gives resources of each example, one after another, the content of others
// of their type, and then their own again.
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
	o := validate.Options{Now: certs.Now}
	for _, tree := range trees {
		if testing.Short() && random.IntN(5) > 0 || len(tree) == 0 {
			continue
		}
		judge, s := validate.NewJudge(rules.All), xds.NewSnapshot(tree)
		judge.Run(t.Context(), s, o)
		var back []xds.Change
		for range 12 {
			c := edited(random, s, pool)
			if n := len(back); n > 0 && random.IntN(2) == 0 {
				c, back = back[n-1], back[:n-1]
			} else {
				back = append(back, xds.Change{Removed: c.Added, Added: c.Removed})
			}
			s = s.Apply(c)
			if diff := cmp.Diff(validate.Run(t.Context(), s, rules.All, o), judge.Run(t.Context(), s, o)); diff != "" {
				t.Fatalf("seed %d, after an edit of %v (-cold +warm):\n%s", seed, c.Added[0].Key, diff)
			}
		}
	}
}

// edited is a Change in which some resources, of those that are alone with their Key, get
// the content of others of their type.
func edited(random *rand.Rand, s *xds.Snapshot, pool map[*xds.Type][]*xds.Resource) (c xds.Change) {
	all := s.All()
	had := make(map[xds.Key]bool)
	for range 1 + random.IntN(4) {
		r := all[random.IntN(len(all))]
		if len(s.Named(r.Key)) > 1 || had[r.Key] || r.Type == xds.VirtualHost { // which a wrapper names
			continue
		}
		had[r.Key] = true
		like := pool[r.Type][random.IntN(len(pool[r.Type]))]
		m := proto.Clone(like.Message).ProtoReflect()
		m.Set(m.Descriptor().Fields().ByName(r.Type.Name), protoreflect.ValueOfString(r.Name))
		next, err := xds.NewResource(m.Interface(), "", like.Origin)
		if err != nil {
			panic(err)
		}
		c.Removed, c.Added = append(c.Removed, r), append(c.Added, next)
	}
	return c
}
