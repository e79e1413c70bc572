package render_test

import (
	"context"
	"fmt"
	"log"

	"xdspub/render"
	"xdspub/source/load"
)

// An endpoint assignment gets a file, and its cluster gets a config source with the path of that file.
func ExampleRenderer_Render() {
	loaded := load.Parse(load.Input{Name: "web.yaml", Format: "yaml", Data: []byte(`"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: web
type: EDS
eds_cluster_config: {eds_config: {ads: {}}}
---
"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
cluster_name: web
`)})
	var r render.Renderer
	out, list := r.Render(context.Background(), loaded.Snapshot(), render.Target{EnvoyPath: "/var/lib/xds", Format: render.YAML})
	if list.HasErrors() {
		log.Fatal(list)
	}
	for _, f := range out.Files {
		fmt.Println(f.Path, f.Version)
	}
	fmt.Println(len(out.Watches), "inotify instances")
	// Output:
	// cds/cds.yaml v09b0beb8150112e6
	// eds/web/eds.yaml vb97763a1c8b84f02
	// lds/lds.yaml ve3b0c44298fc1c14
	// 3 inotify instances
}
