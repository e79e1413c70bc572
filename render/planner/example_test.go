package planner_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"xdspub/render/planner"
	"xdspub/render/published"
	"xdspub/source/load"
)

// A plan for an output directory that does not exist yet. The files that a resource names come before the
// resource.
func Example() {
	snapshot := load.Parse(load.Input{Name: "web.yaml", Format: "yaml", Data: []byte(`
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}
- {"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: web}
`)}).Snapshot()
	p := planner.New(published.New(published.Options{Dir: "/nonexistent/out"}), planner.Options{InotifyBudget: 120})
	plan, findings, err := p.Plan(context.Background(), snapshot, time.Now())
	if err != nil || findings.HasErrors() {
		log.Fatal(err, findings)
	}
	for _, step := range plan.Change.Steps {
		for _, f := range step.Write {
			fmt.Println(step.Name+":", f.Path)
		}
	}
	// Output:
	// new names: eds/web/eds.json
	// clusters: cds/cds.json
	// listeners: lds/lds.json
}
