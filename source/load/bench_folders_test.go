package load

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkUpdateFolders removes a fifth of the folders of a tree, and adds them again.
func BenchmarkUpdateFolders(b *testing.B) {
	root, away := b.TempDir(), b.TempDir()
	const n = 5_000
	for i := range n {
		dir := filepath.Join(root, fmt.Sprintf("team-%d", i))
		must(b, os.Mkdir(dir, 0o755))
		must(b, os.WriteFile(filepath.Join(dir, "cluster.yaml"), fmt.Appendf(nil, "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: c%d\n", i), 0o644))
	}
	var changed []string
	for i := range n / 5 {
		changed = append(changed, filepath.Join(root, fmt.Sprintf("team-%d", i)))
	}
	move := func(from, to string) {
		for _, dir := range changed {
			must(b, os.Rename(filepath.Join(from, filepath.Base(dir)), filepath.Join(to, filepath.Base(dir))))
		}
	}
	l := New(Options{})
	load(b, l, root)
	b.ResetTimer()
	for b.Loop() {
		for _, way := range [][2]string{{root, away}, {away, root}} {
			b.StopTimer()
			move(way[0], way[1])
			b.StartTimer()
			if _, err := l.Update(b.Context(), root, changed); err != nil {
				b.Fatal(err)
			}
		}
	}
}
