package publish

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"xdspub/tools/memdir"
)

// TestManyFiles checks that Publish flushes many files together, once before the first move and once after the
// last move of each step. Publish flushes a few files one by one, which does not wait for other files on the
// disk.
func TestManyFiles(t *testing.T) {
	for _, n := range []int{2, 20} {
		out := memdir.New(t)
		p := &probe{root: out, quick: true}
		d := mustOpen(t, out, p)
		plan := Plan{Steps: []Step{{Name: "endpoints"}, {Name: "clusters", Write: []File{{Path: "cds/cds.json"}}}}}
		for i := range n {
			plan.Steps[0].Write = append(plan.Steps[0].Write, File{Path: fmt.Sprintf("eds/%d/eds.json", i), Data: []byte("1")})
		}
		p.calls = nil
		mustPublish(t, d, plan)
		index := func(what string) []int {
			var at []int
			for i, call := range p.calls {
				if strings.Contains(call, what) {
					at = append(at, i)
				}
			}
			return at
		}
		all, moved, clusters := index("sync all"), index(" eds/"), index(" cds/cds.json")
		if n == 2 {
			if len(all) > 0 || len(index("sync .xdspub/stage/")) < n {
				t.Errorf("of %d files: %s", n, strings.Join(p.calls, "\n"))
			}
			continue
		}
		if len(all) != 2 || all[0] > moved[0] || all[1] < moved[len(moved)-1] || all[1] > clusters[0] {
			t.Errorf("of %d files: %s", n, strings.Join(p.calls, "\n"))
		}
		if each := slices.Concat(index("sync .xdspub/stage/"), index("sync eds")); len(each) > 0 {
			t.Errorf("of %d files some are flushed by themselves: %s", n, strings.Join(p.calls, "\n"))
		}
	}
}

// TestSomeScenariosAreMany checks that some scenarios flush all files together, so that faults and kills meet
// that call.
func TestSomeScenariosAreMany(t *testing.T) {
	for _, s := range scenarios() {
		if _, calls := s.calls(t); slices.ContainsFunc(calls, func(call string) bool { return strings.HasPrefix(call, "sync all") }) {
			return
		}
	}
	t.Error("none")
}
