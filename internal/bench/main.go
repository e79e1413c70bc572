// Command bench measures xdspub validate beside envoy --mode validate, in one
// run on one machine: the same clusters, for the one as a source tree and for the
// other as a static bootstrap. Wall time and peak memory are the best of several
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

func run(xdspub, envoy string) error {
	dir, err := os.MkdirTemp("", "xdspub-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tree := filepath.Join(dir, "clusters.yaml")
	static := filepath.Join(dir, "bootstrap.yaml")
	if err := os.WriteFile(tree, []byte(sample.Clusters(clusters)), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(static, []byte(sample.Bootstrap(clusters)), 0o644); err != nil {
		return err
	}
	var ours, theirs best
	for range rounds {
		if err := ours.measure(xdspub, "validate", tree); err != nil {
			return err
		}
		if err := theirs.measure(envoy, "--mode", "validate", "-c", static, "-l", "error"); err != nil {
			return err
		}
	}
	fmt.Printf("%d clusters, best of %d rounds\n\n", clusters, rounds)
	fmt.Printf("| | wall time | peak memory |\n|---|---|---|\n")
	fmt.Printf("| `envoy --mode validate` | %.2f s | %.0f MiB |\n", theirs.wall.Seconds(), theirs.mebibytes())
	fmt.Printf("| `xdspub validate` | %.2f s | %.0f MiB |\n", ours.wall.Seconds(), ours.mebibytes())
	fmt.Printf("| ratio | %.2f | %.2f |\n", ours.wall.Seconds()/theirs.wall.Seconds(), ours.mebibytes()/theirs.mebibytes())
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
