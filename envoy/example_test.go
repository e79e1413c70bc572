package envoy_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"xdspub/envoy"
)

// An AckWait begins before a file is renamed, and ends when the Envoys have acknowledged it. This AckWait ends at
// once, because its only Envoy is down.
func Example() {
	admin, err := envoy.NewAdmin("unix:/nonexistent/admin.sock")
	if err != nil {
		log.Fatal(err)
	}
	fleet := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{admin}, AckTimeout: time.Minute})
	ctx := context.Background()
	wait, err := fleet.Begin(ctx, []envoy.Subscription{{API: "CDS", Version: "v2", StatPrefixes: []string{envoy.CDS()}}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	// Here cds.json is renamed into place.
	outcome := wait.Await(ctx, envoy.AwaitOptions{Warm: true})
	fmt.Println(outcome)
	// Output:
	// unconfirmed: 0 of 1 Envoys acknowledged it; envoy unix:/nonexistent/admin.sock: is down: dial unix /nonexistent/admin.sock: connect: no such file or directory
}
