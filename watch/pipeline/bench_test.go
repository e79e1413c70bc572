package pipeline_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"xdspub/render"
	"xdspub/render/published"
	"xdspub/source/load"
	"xdspub/tools/sample"
	"xdspub/validate"
	"xdspub/validate/rules"
	"xdspub/validate/transition"
	"xdspub/xds"
)

var sizes = []int{100, 1_000, 10_000}

// clusterTree returns a source tree with n clusters, ten in each file.
func clusterTree(b *testing.B, n int) string {
	dir := b.TempDir()
	for from := 0; from < n; from += 10 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%05d.yaml", from)), []byte(sample.Part(from, 10)), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

func bySize(b *testing.B, f func(b *testing.B, dir string, n int)) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("clusters=%d", n), func(b *testing.B) {
			dir := clusterTree(b, n)
			b.ReportAllocs()
			f(b, dir, n)
		})
	}
}

func loaded(b *testing.B, dir string) *xds.Snapshot {
	b.Helper()
	result, err := load.New(load.Options{}).Load(b.Context(), dir)
	if err != nil || result.Diagnostics.HasErrors() {
		b.Fatal(err, result.Diagnostics)
	}
	return result.Snapshot()
}

func BenchmarkValidate(b *testing.B) {
	bySize(b, func(b *testing.B, dir string, _ int) {
		s := loaded(b, dir)
		for b.Loop() {
			if list := validate.Run(b.Context(), s, rules.All, validate.Options{}); list.HasErrors() {
				b.Fatal(list)
			}
		}
	})
}

func BenchmarkRender(b *testing.B) {
	for _, f := range render.Formats {
		b.Run(f.Name, func(b *testing.B) {
			bySize(b, func(b *testing.B, dir string, _ int) {
				s := loaded(b, dir)
				for b.Loop() {
					var r render.Renderer
					if _, list := r.Render(b.Context(), s, render.Target{EnvoyPath: "/xds", Format: f}); list.HasErrors() {
						b.Fatal(list)
					}
				}
			})
		})
	}
}

// BenchmarkTransitions runs the transition rules on a tree, as each reconcile does.
func BenchmarkTransitions(b *testing.B) {
	bySize(b, func(b *testing.B, dir string, _ int) {
		s := loaded(b, dir)
		st, err := published.New(published.Options{Dir: b.TempDir()}).State()
		if err != nil {
			b.Fatal(err)
		}
		st.Clusters, st.Listeners = s.Of(xds.Cluster), s.Of(xds.Listener)
		for b.Loop() {
			if list, err := transition.Transitions(st, s, transition.Options{}); err != nil || len(list) > 0 {
				b.Fatal(err, list)
			}
		}
	})
}
