// Command bench measures xdspub validate beside envoy --mode validate, in one
// run on one machine: the same configuration, for the one as a source tree and as
// a static bootstrap, for the other as that bootstrap. Wall time and peak memory are the best of several
// rounds; what counts is the ratio.
//
//	bench XDSPUB ENVOY
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"xdspub/internal/sample"
)

const (
	clusters = 10_000
	rounds   = 5
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: bench XDSPUB ENVOY")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// size is that of the larger measurement.
var size = sample.Topology{Clusters: clusters, Routes: 1_000, Listeners: 100}

func run(xdspub, envoy string) error {
	dir, err := os.MkdirTemp("", "xdspub-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	err = compare(dir, "clusters", fmt.Sprintf("%d clusters", clusters), xdspub, envoy,
		map[string]string{"clusters.yaml": sample.Clusters(clusters)}, sample.Bootstrap(clusters))
	if err != nil {
		return err
	}
	err = compare(dir, "mesh", fmt.Sprintf("%d clusters, %[1]d endpoint assignments of 3 endpoints, %d route configurations of 10 hosts, %d listeners", size.Clusters, size.Routes, size.Listeners),
		xdspub, envoy, size.Tree(), size.Bootstrap())
	if err != nil {
		return err
	}
	return measureEdits(dir, xdspub, []int{1_000, clusters})
}

// compare measures both programs on one configuration: as a source tree, and as a
// bootstrap, which both of them can read.
func compare(dir, name, what, xdspub, envoy string, files map[string]string, bootstrap string) error {
	tree := filepath.Join(dir, name)
	static := filepath.Join(dir, name+".yaml")
	if err := os.Mkdir(tree, 0o755); err != nil {
		return err
	}
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(tree, file), []byte(content), 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(static, []byte(bootstrap), 0o644); err != nil {
		return err
	}
	var ours, followed, theirs best
	for range rounds {
		if err := ours.measure(xdspub, "validate", tree); err != nil {
			return err
		}
		if err := followed.measure(xdspub, "validate", static); err != nil {
			return err
		}
		if err := theirs.measure(envoy, "--mode", "validate", "-c", static, "-l", "error"); err != nil {
			return err
		}
	}
	fmt.Printf("%s, best of %d rounds\n\n", what, rounds)
	fmt.Printf("| | wall time | ratio | peak memory | ratio |\n|---|---|---|---|---|\n")
	fmt.Printf("| `envoy --mode validate` | %.2f s | 1 | %.0f MiB | 1 |\n", theirs.wall.Seconds(), theirs.mebibytes())
	for _, row := range []struct {
		what string
		best best
	}{{"of a source tree", ours}, {"of the same bootstrap", followed}} {
		fmt.Printf("| `xdspub validate` %s | %.2f s | %.2f | %.0f MiB | %.2f |\n", row.what, row.best.wall.Seconds(), row.best.wall.Seconds()/theirs.wall.Seconds(), row.best.mebibytes(), row.best.mebibytes()/theirs.mebibytes())
	}
	fmt.Println()
	return nil
}

// best is the smallest of what was measured.
type best struct {
	wall time.Duration
	rss  int64 // kibibytes
}

func (b *best) mebibytes() float64 { return float64(b.rss) / 1024 }

func (b *best) measure(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	wall := time.Since(start)
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	rss := int64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
	if b.wall == 0 || wall < b.wall {
		b.wall = wall
	}
	if b.rss == 0 || rss < b.rss {
		b.rss = rss
	}
	return nil
}
