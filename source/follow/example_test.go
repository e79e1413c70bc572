package follow_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"xdspub/source/follow"
)

// Bootstrap reads the bootstrap of an Envoy, and every file that the bootstrap leads Envoy to.
func ExampleBootstrap() {
	dir, err := os.MkdirTemp("", "xdspub")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{
		"envoy.yaml": `
node: {id: edge-1, cluster: edge}
dynamic_resources:
  cds_config: {path_config_source: {path: ./cds.yaml}}
`,
		"cds.yaml": `
resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: web
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
	result, err := follow.Bootstrap(context.Background(), filepath.Join(dir, "envoy.yaml"), follow.Options{Root: dir})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range result.Diagnostics {
		fmt.Println(d)
	}
	for _, file := range result.Files {
		fmt.Println(filepath.Base(file))
	}
	for _, r := range result.Snapshot.All() {
		fmt.Println(r)
	}
	// Output:
	// envoy.yaml
	// cds.yaml
	// cluster "web"
}
