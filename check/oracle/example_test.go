package oracle_test

import (
	"context"
	"fmt"

	"xdspub/check/oracle"
	"xdspub/envoy/trial"
	"xdspub/source/load"
)

// A program that is no Envoy judges nothing.
func Example() {
	document := load.Parse(load.Input{Name: "web.yaml", Format: "yaml", Data: []byte(`
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: web
`)})
	o := oracle.New(trial.Envoy{Program: "true"})
	_, err := o.Judge(context.Background(), oracle.Candidate{Snapshot: document.Snapshot(), Path: "web.yaml"})
	fmt.Println(err)
	// Output:
	// true --mode validate: the program exited without judging the bootstrap: is it Envoy?
}
