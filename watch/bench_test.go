package watch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"xdspub/check"
	"xdspub/render"
	"xdspub/render/planner"
	"xdspub/tools/sample"
	"xdspub/watch/pipeline"
)

// BenchmarkPass measures a pass of a watch after an edit, from the look at the source tree to the last rename,
// for trees of several sizes. cpu-ms/op is processor time.
func BenchmarkPass(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		topology := sample.Topology{Clusters: n, Routes: n / 10, Listeners: n / 100}
		for _, endpoints := range []planner.EndpointsMode{planner.EndpointsFile, planner.EndpointsInline} {
			tree := newTree(b, topology, endpoints)
			for _, e := range editsOf(topology) {
				b.Run(fmt.Sprintf("clusters=%d/eds=%s/edit=%s", n, endpoints, e.name), func(b *testing.B) {
					b.ReportAllocs()
					var used time.Duration
					for change := 1; b.Loop(); change++ {
						b.StopTimer()
						for _, before := range e.before {
							tree.pass(tree.write(before(change))...)
						}
						if e.trimmed {
							tree.trim()
						}
						changed := tree.write(e.files(change))
						if e.folder {
							changed = []string{filepath.Dir(changed[0])}
						}
						tree.c.Trust(len(changed) > 0 || e.trims) // as after an event; a rescan reads everything
						begun := processorTime()
						b.StartTimer()
						if e.trims {
							tree.trim()
						} else {
							tree.pass(changed...)
						}
						used += processorTime() - begun
					}
					b.ReportMetric(float64(used.Microseconds())/1000/float64(b.N), "cpu-ms/op")
				})
			}
			tree.c.Close()
		}
	}
}

// benchEdit is an edit of the source tree: files by name. An empty text removes the file.
type benchEdit struct {
	name string
	// before are the edits before each measured edit; trimmed adds a trim before it.
	before  []func(change int) map[string]string
	trimmed bool
	files   func(change int) map[string]string
	// folder means that the edit also creates the folder of the file. trims means that the benchmark measures a
	// trim and not a pass.
	folder, trims bool
}

func editsOf(t sample.Topology) []benchEdit {
	none := func(int) map[string]string { return nil }
	one := func(file string, resource func(i, change int) string) func(int) map[string]string {
		return func(change int) map[string]string { return map[string]string{file: resource(7, change)} }
	}
	come := func(change int, resources ...string) map[string]string {
		files := make(map[string]string)
		for i, text := range resources {
			files[fmt.Sprintf("clusters/added-%06d-%d.yaml", change, i)] = text
		}
		return files
	}
	gone := func(come func(int) map[string]string) func(int) map[string]string {
		return func(change int) map[string]string {
			files := come(change)
			for name := range files {
				files[name] = ""
			}
			return files
		}
	}
	cluster := func(change int) map[string]string {
		i := t.Clusters + change
		return come(i, t.Cluster(i, 0), t.Endpoints(i, 0))
	}
	listener := func(change int) map[string]string {
		i, own := t.Routes+change, sample.Topology{Clusters: t.Clusters, Routes: 1, Listeners: 1} // the listener asks for one route configuration
		return come(i, own.Listener(i, 0), own.RouteConfiguration(i, 0))
	}
	folder := func(change int) map[string]string {
		i := t.Clusters + change
		return map[string]string{fmt.Sprintf("folder-%06d/cluster.yaml", change): t.Cluster(i, 0) + "---\n" + t.Endpoints(i, 0)}
	}
	eds := one("endpoints/000007.yaml", t.Endpoints)
	type list = []func(int) map[string]string
	return []benchEdit{
		{name: "none", files: none},
		{name: "eds", files: eds},
		{name: "rds", files: one("routes/000007.yaml", t.RouteConfiguration)},
		{name: "cds", files: one("clusters/000007.yaml", t.Cluster)},
		{name: "lds", files: one("listeners/000007.yaml", t.Listener)},
		{name: "cluster-comes", files: cluster},
		{name: "cluster-goes", before: list{cluster}, files: gone(cluster)},
		{name: "trim", before: list{cluster, gone(cluster)}, files: none, trims: true},
		{name: "eds-after-trim", before: list{cluster, gone(cluster)}, trimmed: true, files: eds},
		{name: "folder-comes", files: folder, folder: true},
		{name: "listener-comes", files: listener},
		{name: "listener-goes", before: list{listener}, files: gone(listener)},
	}
}

// tree is a published source tree.
type tree struct {
	b *testing.B
	o Options
	c *Controller
	s *check.Tree
}

func newTree(b *testing.B, topology sample.Topology, endpoints planner.EndpointsMode) *tree {
	dir := b.TempDir()
	t := &tree{b: b, o: Options{Options: pipeline.Options{
		Source: check.Options{Path: filepath.Join(dir, "src")}, Out: filepath.Join(dir, "out"), Format: render.Binary, Endpoints: endpoints, InotifyBudget: 1_000_000, TrimDelay: time.Hour,
	}}}
	t.write(topology.Files())
	t.c, t.s = New(t.o), Tree([]Options{t.o})
	if err := t.c.Open(); err != nil {
		b.Fatal(err)
	}
	t.pass()
	return t
}

// write writes files of the source tree, and removes those without a text. It returns their
// paths.
func (t *tree) write(files map[string]string) (changed []string) {
	for name, text := range files {
		file := filepath.Join(t.o.Source.Path, name)
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		switch {
		case err == nil && text == "":
			err = os.Remove(file)
		case err == nil:
			if err = os.WriteFile(file+".new", []byte(text), 0o644); err == nil {
				err = os.Rename(file+".new", file)
			}
		}
		if err != nil {
			t.b.Fatal(err)
		}
		changed = append(changed, file)
	}
	return changed
}

// pass runs a pass after events for files, or after a rescan without files.
func (t *tree) pass(changed ...string) {
	ctx := context.Background()
	read := t.s.Check
	if len(changed) > 0 {
		read = func(ctx context.Context) (*check.Result, error) { return t.s.Update(ctx, changed) }
	}
	checked, err := read(ctx)
	if err != nil {
		t.b.Fatal(err)
	}
	if err := t.c.Prepare(ctx); err != nil {
		t.b.Fatal(err)
	}
	if len(changed) == 0 && t.c.Settled() {
		return
	}
	plan, err := t.c.Plan(ctx, checked)
	if err != nil {
		t.b.Fatal(err)
	}
	if o, err := t.c.Publish(ctx, checked, plan); err != nil || o.Verdict != Published {
		t.b.Fatal(o.Message(), err, checked.Diagnostics)
	}
	if _, _, err := t.c.Trim(ctx); err != nil {
		t.b.Fatal(err)
	}
}

// trim runs the trim of a watch after the trim delay.
func (t *tree) trim() {
	trimmed, _, err := t.c.pipeline.Trim(context.Background(), t.c.dir, time.Now().Add(2*t.o.TrimDelay))
	if written, removed := Files(trimmed); err != nil || written+removed == 0 {
		t.b.Fatal(trimmed, err)
	}
}

// processorTime returns the processor time of this process.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
