package load_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"xdspub/source/load"
	"xdspub/tools/sample"
)

// manyFiles writes a tree of n clusters and n endpoint assignments, each in a file.
func manyFiles(b *testing.B, n int) (root string) {
	root = b.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "eds"), 0o755); err != nil {
		b.Fatal(err)
	}
	for i := range n / 2 {
		write(b, root, fmt.Sprintf("cds/%d.yaml", i), sample.Part(i, 1), fmt.Sprintf("eds/%d.yaml", i), assignment(i, 0))
	}
	return root
}

func assignment(i, port int) string {
	return fmt.Sprintf(`"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
cluster_name: service-%d
endpoints:
- lb_endpoints:
  - endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: %d}}}
`, i, 8000+port%1000)
}

// BenchmarkUpdate measures Update after an edit of one file, which must not depend on the number of files.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			root := manyFiles(b, n)
			loader := load.New(load.Options{})
			mustLoad(b, loader, root).Snapshot().ID() // the next snapshot derives from this one
			i := 0
			var took time.Duration // without writing the file
			b.ReportAllocs()
			for b.Loop() {
				path := filepath.Join(root, "eds", fmt.Sprint(i%(n/2), ".yaml"))
				write(b, root, filepath.Join("eds", filepath.Base(path)), assignment(i%(n/2), i))
				i++
				start := time.Now()
				if _, err := loader.Update(b.Context(), root, []string{path}); err != nil {
					b.Fatal(err)
				}
				took += time.Since(start)
			}
			b.ReportMetric(float64(took.Microseconds())/float64(b.N), "update-µs/op")
		})
	}
}

// BenchmarkUnchanged measures Load of an old tree without changes.
func BenchmarkUnchanged(b *testing.B) {
	for _, n := range []int{11_200, 100_000} {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			root := manyFiles(b, n)
			loader := load.New(load.Options{})
			loader.SetClock(func() time.Time { return time.Now().Add(time.Hour) }) // Load reads young files again
			first := mustLoad(b, loader, root)
			b.ReportAllocs()
			for b.Loop() {
				if again, err := loader.Load(b.Context(), root); err != nil || again != first {
					b.Fatal(err, "something has changed")
				}
			}
		})
	}
}
