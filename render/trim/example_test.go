package trim_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"xdspub/render"
	"xdspub/render/confirm"
	"xdspub/render/publish"
	"xdspub/render/published"
	"xdspub/render/trim"
)

// Trim removes a file that nothing names any more, after the trim delay.
func Example() {
	out, err := os.MkdirTemp("", "xdspub")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(out)
	dir, err := publish.Open(out, publish.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dir.Close()
	ctx, now := context.Background(), time.Now()
	if _, err := dir.Publish(ctx, publish.Plan{
		Steps: []publish.Step{{Name: "all", Write: []publish.File{
			{Path: "cds/cds.json", Data: []byte(`{"resources": []}`)},
			{Path: "eds/old/eds.json", Data: []byte(`{"resources": []}`)},
		}}},
		Manifest: publish.Manifest{
			Format: "json", EnvoyPath: "/xds", Snapshot: "1",
			Retired: []publish.Retired{{File: "eds/old/eds.json", Since: now.Add(-time.Hour)}},
		},
	}); err != nil {
		log.Fatal(err)
	}

	reader := published.New(published.Options{Dir: out, EnvoyPath: "/xds"})
	trimmer := trim.New(reader, confirm.New(reader, confirm.Options{}), new(render.Renderer), trim.Options{Delay: 10 * time.Minute})
	result, _, err := trimmer.Trim(ctx, dir, now)
	if err != nil {
		log.Fatal(err)
	}
	for _, step := range result.Steps {
		fmt.Println(step.Name, step.Removed)
	}
	// Output:
	// trim files [eds/old/eds.json]
}
