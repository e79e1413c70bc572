package watch_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"xdspub/check"
	"xdspub/render/planner"
	"xdspub/watch"
	"xdspub/watch/pipeline"
)

// A source tree is published once.
func Example() {
	tmp, err := os.MkdirTemp("", "xdspub")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	source := filepath.Join(tmp, "web.yaml")
	if err := os.WriteFile(source, []byte(`
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: web
`), 0o644); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	o := watch.Options{Options: pipeline.Options{
		Source: check.Options{Path: source}, Out: filepath.Join(tmp, "out"), Endpoints: planner.EndpointsAuto, InotifyBudget: 100,
	}}
	c := watch.New(o)
	checked, err := watch.Tree([]watch.Options{o}).Check(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := c.Open(); err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if err := c.Prepare(ctx); err != nil {
		log.Fatal(err)
	}
	plan, err := c.Plan(ctx, checked)
	if err != nil {
		log.Fatal(err)
	}
	outcome, err := c.Publish(ctx, checked, plan)
	if err != nil {
		log.Fatal(err)
	}
	_, message, _ := strings.Cut(outcome.Message(), ": ")
	fmt.Println(outcome.Verdict, "-", message)
	// Output:
	// published - 2 files written, 0 removed
}
