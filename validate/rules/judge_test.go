package rules_test

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
			got, want := judge.Run(t.Context(), s, o), validate.Run(t.Context(), s, rules.All, o)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, step %d, %d resources (-cold +warm):\n%s", seed, step, s.Len(), strings.Join(strings.SplitAfterN(diff, "\n", 40)[:min(39, strings.Count(diff, "\n"))], ""))
			}
		}
	}
}
