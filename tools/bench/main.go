// Command bench measures xdspub and, on the same machine in the same run, programs to compare with it. First of
// all, it compares xdspub validate with envoy --mode validate on the same configuration: xdspub gets a source tree
// and a static bootstrap, Envoy gets the bootstrap. Each figure is the best of several rounds. The ratio is the
// result.
//
//	bench XDSPUB ENVOY [PART...]
//
// The parts are validate, large (ten times as many clusters), reports (findings in all formats), variants
// (dynamic parameters), edits, confirmation, questions (the cost of Envoy's admin interface), envoy (until
// Envoy has accepted an edit), memory (of a watch), serve (beside a server of go-control-plane), relay (serve in front
// of that server), rest (beside sovereign), observe (the cost of --http), fleet (machines that follow a store), history
// (the cost of --history) and idle.
// Without a PART, bench measures all parts.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"xdspub/source/load"
	"xdspub/tools/sample"
)

const (
	clusters = 10_000
	rounds   = 5
)

func main() {
	if len(os.Args) == 5 && slices.Contains([]string{snapshotCache, staticCache}, os.Args[1]) {
		fmt.Fprintln(os.Stderr, "bench:", serveSnapshotCache(os.Args[1:]))
		os.Exit(1)
	}
	if len(os.Args) == 5 && os.Args[1] == followers {
		if err := runFollowers(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: bench XDSPUB ENVOY [PART...]")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// size is the size of the topology of measureValidate.
var size = sample.Topology{Clusters: clusters, Routes: 1_000, Listeners: 100}

func run(xdspub, envoy string, names []string) error {
	dir, err := os.MkdirTemp("", "xdspub-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	w, sizes := setup{dir: dir, xdspub: xdspub, envoy: envoy}, []int{1_000, clusters}
	parts := []part{
		{"validate", w.measureValidate},
		{"large", w.measureLarge},
		{"reports", w.measureReports},
		{"variants", w.measureVariants},
		{"edits", func() error { return measureEdits(dir, xdspub, append(sizes, 10*clusters)) }},
		{"confirmation", func() error { return measureConfirmation(dir, xdspub, envoy, sizes) }},
		{"questions", func() error { return measureQuestions(dir, xdspub, envoy, sizes) }},
		{"envoy", func() error { return measureRaw(dir, xdspub, envoy, sizes) }},
		{"memory", func() error { return measureMemory(dir, xdspub, []int{clusters, 10 * clusters}) }},
		{"serve", func() error { return measureServe(dir, xdspub, clusters) }},
		{"relay", func() error { return measureRelay(dir, xdspub, []int{100, clusters}) }},
		{"rest", func() error { return measureREST(dir, xdspub) }},
		{"observe", func() error { return measureObserve(dir, xdspub, clusters) }},
		{"fleet", func() error { return measureFleet(dir, xdspub, clusters/10) }},
		{"history", func() error { return measureHistory(dir, xdspub, clusters) }},
		{"idle", func() error { return measureIdle(dir, xdspub, envoy, []int{clusters, 10 * clusters}) }},
	}
	for _, name := range names {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return fmt.Errorf("unknown part %q", name)
		}
	}
	for _, p := range parts {
		if len(names) == 0 || slices.Contains(names, p.name) {
			if err := p.measure(); err != nil {
				return err
			}
		}
	}
	return nil
}

// part is a PART of the usage.
type part struct {
	name    string
	measure func() error
}

// measureValidate compares xdspub validate with envoy --mode validate, for several configurations and formats.
func (w setup) measureValidate() error {
	dir := w.dir
	plain, found := filepath.Join(dir, "clusters"), filepath.Join(dir, "found")
	err := errors.Join(
		w.write("clusters", map[string]string{"clusters.yaml": sample.Clusters(clusters)}),
		w.write(".", map[string]string{"clusters.yaml": sample.Bootstrap(clusters)}),
		w.topology("mesh", size),
		w.topology("found", sample.Topology{Clusters: size.Clusters, Routes: size.Routes, Listeners: size.Listeners, Deprecated: 1_000}),
		w.write("small", size.Files()),
	)
	if err != nil {
		return err
	}
	mesh := filepath.Join(dir, "mesh")
	all := fmt.Sprintf("%d clusters, %[1]d endpoint assignments of 3 endpoints, %d route configurations of 10 hosts, "+
		"%d listeners", size.Clusters, size.Routes, size.Listeners)
	for _, c := range []struct {
		what, theirs string
		ours         []form
	}{
		{fmt.Sprintf("%d clusters", clusters), plain + ".yaml", []form{{"of a source tree", plain}, {"of the same bootstrap", plain + ".yaml"}}},
		{all, mesh + ".yaml", []form{
			{"of a source tree", mesh}, {"of lists without `resources:`", mesh + "-lists"},
			{fmt.Sprintf("of %d files", 2*size.Clusters+size.Routes+size.Listeners), filepath.Join(dir, "small")}, {"of the same bootstrap", mesh + ".yaml"},
		}},
		{all + ", with 1000 warnings", found + ".yaml", []form{
			{"of a source tree", found}, {"of lists without `resources:`", found + "-lists"}, {"of the same bootstrap", found + ".yaml"},
		}},
		{all + ", as JSON", mesh + ".json", []form{{"of a source tree", mesh + "-json"}, {"of the same bootstrap", mesh + ".json"}}},
		{all + ", as JSON, with 1000 warnings", found + ".json", []form{{"of a source tree", found + "-json"}, {"of the same bootstrap", found + ".json"}}},
		{all + ", in binary", mesh + ".pb", []form{{"of a source tree", mesh + "-pb"}, {"of the same bootstrap", mesh + ".pb"}}},
		{all + ", as text proto", mesh + ".pb_text", []form{{"of a source tree", mesh + "-pb_text"}, {"of the same bootstrap", mesh + ".pb_text"}}},
	} {
		if err := w.compare(c.what, c.theirs, c.ours); err != nil {
			return err
		}
	}
	return nil
}

// setup is a directory of configurations, with the programs that judge them.
type setup struct{ dir, xdspub, envoy string }

// form is a form of a configuration, at a path.
type form struct{ what, path string }

// write writes files to a folder.
func (w setup) write(folder string, files map[string]string) error {
	for name, content := range files {
		path := filepath.Join(w.dir, folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// formats are the formats of a topology beside YAML. Each name is an argument of xdspub convert, and a suffix of
// files.
var formats = []string{"json", "pb", "pb_text"}

// topology writes a topology as source trees and as bootstraps, in YAML and in each of formats.
func (w setup) topology(name string, t sample.Topology) error {
	tree := t.Tree()
	lists := make(map[string]string)
	for file, content := range tree {
		lists[file] = strings.TrimPrefix(content, "resources:\n")
	}
	path := filepath.Join(w.dir, name)
	if err := errors.Join(w.write(name, tree), w.write(name+"-lists", lists), w.write(".", map[string]string{name + ".yaml": t.Bootstrap()})); err != nil {
		return err
	}
	for file := range tree {
		for _, format := range formats {
			out, err := exec.Command(w.xdspub, "convert", "--to", format, filepath.Join(path, file)).Output()
			if err != nil {
				return fmt.Errorf("convert %s: %w", file, err)
			}
			if err := w.write(name+"-"+format, map[string]string{strings.TrimSuffix(file, "yaml") + format: string(out)}); err != nil {
				return err
			}
		}
	}
	b, found, err := load.Bootstrap(path+".yaml", nil)
	if err != nil || found.HasErrors() {
		return fmt.Errorf("%v, %v", err, found)
	}
	json, err := protojson.Marshal(b)
	if err != nil {
		return err
	}
	binary, err := proto.Marshal(b)
	text, failed := prototext.Marshal(b)
	return errors.Join(err, failed, w.write(".", map[string]string{
		name + ".json": string(json), name + ".pb": string(binary),
		name + ".pb_text": string(text),
	}))
}

// compare measures Envoy on a bootstrap and xdspub on the same resources in several forms, and prints both.
func (w setup) compare(what, bootstrap string, forms []form) error {
	var theirs best
	ours := make([]best, len(forms))
	for range rounds {
		for i, f := range forms {
			if err := ours[i].measure(w.xdspub, "validate", f.path); err != nil {
				return err
			}
		}
		if err := theirs.measure(w.envoy, "--mode", "validate", "-c", bootstrap, "-l", "error"); err != nil {
			return err
		}
	}
	fmt.Printf("%s, best of %d rounds\n\n", what, rounds)
	fmt.Printf("| | wall time | ratio | processor | ratio | peak memory | ratio |\n|---|---|---|---|---|---|---|\n")
	fmt.Printf("| `envoy --mode validate` | %.2f s | 1 | %.2f s | 1 | %.0f MiB | 1 |\n", theirs.wall.Seconds(), theirs.cpu.Seconds(), theirs.mebibytes())
	for i, f := range forms {
		b := ours[i]
		fmt.Printf("| `xdspub validate` %s | %.2f s | %.2f | %.2f s | %.2f | %.0f "+
			"MiB | %.2f |\n", f.what, b.wall.Seconds(), b.wall.Seconds()/theirs.wall.Seconds(),
			b.cpu.Seconds(), b.cpu.Seconds()/theirs.cpu.Seconds(), b.mebibytes(), b.mebibytes()/theirs.mebibytes())
	}
	fmt.Println()
	return nil
}

// best has the smallest measurement of each figure.
type best struct {
	wall time.Duration
	cpu  time.Duration // of all cores
	rss  int64         // kibibytes
}

func (b *best) mebibytes() float64 { return float64(b.rss) / 1024 }

func (b *best) measure(name string, args ...string) error {
	if err := forgetPeak(); err != nil {
		return err
	}
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
	if cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); b.cpu == 0 || cpu < b.cpu {
		b.cpu = cpu
	}
	if b.rss == 0 || rss < b.rss {
		b.rss = rss
	}
	return nil
}

// forgetPeak resets the peak memory of this process in the kernel. A child inherits the peak of its parent, and
// this process has made large configurations.
func forgetPeak() error {
	debug.FreeOSMemory()
	return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}
