package pipeline_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"xdspub/check"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/watch/pipeline"
)

// The stages for a source tree: check, plan and publish.
func Example() {
	tmp, err := os.MkdirTemp("", "xdspub")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	tree, out := filepath.Join(tmp, "tree"), filepath.Join(tmp, "out")
	if err := os.Mkdir(tree, 0o755); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tree, "web.yaml"), []byte(`
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: web
`), 0o644); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	o := pipeline.Options{Source: check.Options{Path: tree}, Out: out, Endpoints: planner.EndpointsAuto, InotifyBudget: 100}
	p := pipeline.New(o)
	checked, err := check.New(o.Source).Check(ctx)
	if err != nil || !checked.Accepted() {
		log.Fatal(err, checked)
	}
	dir, err := publish.Open(out, publish.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dir.Close()
	plan, list, err := p.Plan(context.Background(), checked.Snapshot, time.Now())
	if err != nil || list.HasErrors() {
		log.Fatal(err, list)
	}
	result, err := p.Publish(ctx, dir, plan)
	if err != nil {
		log.Fatal(err)
	}
	for _, step := range result.Steps {
		fmt.Println(step)
	}
	// Output:
	// {clusters [cds/cds.json] []}
	// {listeners [lds/lds.json] []}
}
