package controller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"xdspub/check"
	"xdspub/internal/sample"
	"xdspub/pipeline"
	"xdspub/planner"
)

// BenchmarkPass is a pass of a watch after an edit of one file, from the look at the
// source tree to the last rename, by the size of the tree. cpu-ms/op is processor time.
func BenchmarkPass(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		topology := sample.Topology{Clusters: n, Routes: n / 10, Listeners: n / 100}
		for _, endpoints := range []planner.EndpointsMode{planner.EndpointsFile, planner.EndpointsInline} {
			tree := newTree(b, topology, endpoints)
			for _, edit := range []struct {
				name, file string
				resource   func(i, change int) string
			}{
				{"none", "", nil},
				{"eds", "endpoints/000007.yaml", topology.Endpoints},
				{"rds", "routes/000007.yaml", topology.RouteConfiguration},
				{"cds", "clusters/000007.yaml", topology.Cluster},
				{"lds", "listeners/000007.yaml", topology.Listener},
			} {
				b.Run(fmt.Sprintf("clusters=%d/eds=%s/edit=%s", n, endpoints, edit.name), func(b *testing.B) {
					b.ReportAllocs()
					tree.c.Trust(edit.file != "") // as after an event; a rescan looks at all
					begun := processorTime()
					for change := 1; b.Loop(); change++ {
						if edit.file != "" {
							tree.write(edit.file, edit.resource(7, change))
							tree.pass(filepath.Join(tree.o.Source.Path, edit.file))
						} else {
							tree.pass()
						}
					}
					b.ReportMetric(float64((processorTime()-begun).Milliseconds())/float64(b.N), "cpu-ms/op")
				})
			}
			tree.c.Close()
		}
	}
}

// tree is a source tree that is published.
type tree struct {
	b *testing.B
	o Options
	c *Controller
}

func newTree(b *testing.B, topology sample.Topology, endpoints planner.EndpointsMode) *tree {
	dir := b.TempDir()
	t := &tree{b: b, o: Options{Options: pipeline.Options{
		Source: check.Options{Path: filepath.Join(dir, "src")}, Out: filepath.Join(dir, "out"), Endpoints: endpoints, InotifyBudget: 1_000_000,
	}}}
	for name, text := range topology.Files() {
		if err := os.MkdirAll(filepath.Join(t.o.Source.Path, filepath.Dir(name)), 0o755); err != nil {
			b.Fatal(err)
		}
		t.write(name, text)
	}
	t.c = New(t.o)
	if err := t.c.Open(); err != nil {
		b.Fatal(err)
	}
	t.pass()
	return t
}

func (t *tree) write(name, text string) {
	file := filepath.Join(t.o.Source.Path, name)
	err := os.WriteFile(file+".new", []byte(text), 0o644)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		t.b.Fatal(err)
	}
}

// pass is that after events of files; without any, that of a rescan.
func (t *tree) pass(changed ...string) {
	ctx := context.Background()
	read := t.c.Check
	if len(changed) > 0 {
		read = func(ctx context.Context) (*check.Result, error) { return t.c.pipeline.Update(ctx, changed) }
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

// processorTime is what this process has used so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
