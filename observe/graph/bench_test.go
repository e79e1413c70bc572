package graph_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"xdspub/check"
	"xdspub/observe/graph"
	"xdspub/tools/sample"
)

// topology checks a source tree of clusters, and of as many routes to them.
func topology(t testing.TB, clusters int) *check.Result {
	t.Helper()
	dir := t.TempDir()
	for name, text := range (sample.Topology{Clusters: clusters, Routes: clusters / 10, Listeners: max(clusters/100, 1)}).Tree() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	checked, err := check.Once(t.Context(), check.Options{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	return checked
}

// BenchmarkGraph draws a tree: all of its nodes, or as many as a page shows.
func BenchmarkGraph(b *testing.B) {
	for _, clusters := range []int{1000, 10_000} {
		checked := topology(b, clusters)
		for _, most := range []int{0, 300} {
			b.Run(fmt.Sprintf("clusters=%d/most=%d", clusters, most), func(b *testing.B) {
				for b.Loop() {
					g, err := graph.New(b.Context(), checked.Snapshot, graph.Options{Findings: checked.Diagnostics})
					if err != nil {
						b.Fatal(err)
					}
					if err := g.Limit(graph.Limits{Nodes: most}).Layout().WriteSVG(io.Discard, graph.SVGOptions{}); err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(len(g.Nodes)), "nodes")
				}
			})
		}
	}
}
