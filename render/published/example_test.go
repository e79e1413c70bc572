package published_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"xdspub/render/published"
)

// A Reader reads the clusters in an output directory, whoever wrote them.
func Example() {
	out, err := os.MkdirTemp("", "xdspub")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(out)
	if err := os.Mkdir(filepath.Join(out, "cds"), 0o755); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, "cds/cds.json"), []byte(`{"resources": [
{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "web", "type": "EDS",
 "eds_cluster_config": {"eds_config": {"path_config_source": {"path": "/xds/eds/web/eds.json"}}}}]}`), 0o644); err != nil {
		log.Fatal(err)
	}

	reader := published.New(published.Options{Dir: out, EnvoyPath: "/xds"})
	state, err := reader.State()
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range state.Clusters {
		fmt.Println(r.Name)
	}
	for _, sub := range reader.Subscribers(state.Clusters, state.Listeners, nil).All {
		fmt.Println(sub.File, sub.Expect("1", true).StatPrefixes)
	}
	// Output:
	// web
	// cds/cds.json [cluster_manager.cds]
	// eds/web/eds.json [cluster.web]
	// lds/lds.json [listener_manager.lds]
}
