package check_test

import (
	"context"
	"fmt"
	"log"

	"xdspub/check"
	"xdspub/source/load"
)

// A document is checked as if it were a source tree.
func Example() {
	tree := check.New(check.Options{Path: "-", Input: &load.Input{Name: "web.yaml", Format: "yaml", Data: []byte(`
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: web
connect_timeout: -1s
`)}})
	result, err := tree.Check(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range result.Diagnostics {
		fmt.Println(d.Position, d.Severity, d.Code)
	}
	fmt.Println("accepted:", result.Accepted())
	// Output:
	// web.yaml:4:18 error duration-range
	// accepted: false
}
