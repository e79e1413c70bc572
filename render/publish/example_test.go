package publish_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"xdspub/render/publish"
)

// A plan publishes a cluster and its endpoints. The file that the cluster names comes first, because Envoy
// refuses a cluster whose file is missing.
func Example() {
	tmp, err := os.MkdirTemp("", "xdspub")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, "out")

	plan := publish.Plan{
		Steps: []publish.Step{
			{Name: "endpoints", Write: []publish.File{{Path: "eds/web/eds.json", Data: []byte(`{"resources": []}`)}}},
			{Name: "clusters", Write: []publish.File{{Path: "cds/cds.json", Data: []byte(`{"resources": []}`)}}},
		},
		Gap:      10 * time.Millisecond,
		Manifest: publish.Manifest{Format: "json", EnvoyPath: out, EDSMode: "file", Snapshot: "s1", Published: time.Now()},
	}
	left, err := publish.Pending(out, plan, publish.Options{}) // a dry run
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("pending:", len(left.Steps), "steps")

	dir, err := publish.Open(out, publish.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dir.Close()
	for range 2 { // the second Publish moves nothing
		res, err := dir.Publish(context.Background(), plan)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("published:", res.Steps)
	}
	// Output:
	// pending: 2 steps
	// published: [{endpoints [eds/web/eds.json] []} {clusters [cds/cds.json] []}]
	// published: []
}
