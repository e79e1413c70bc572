package confirm_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"xdspub/envoy"
	"xdspub/render/confirm"
	"xdspub/render/publish"
	"xdspub/render/published"
)

// A change asks an Envoy about a step. The Envoy is down, and so confirms nothing.
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

	admin, err := envoy.NewAdmin("unix:/nonexistent/admin.sock")
	if err != nil {
		log.Fatal(err)
	}
	fleet := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{admin}})
	envoys := confirm.New(published.New(published.Options{Dir: out, EnvoyPath: "/xds"}), confirm.Options{Fleet: fleet})
	change := envoys.Change(nil, publish.Refusal{})
	if _, err := dir.Publish(context.Background(), publish.Plan{
		Steps:    []publish.Step{{Name: "clusters", Write: []publish.File{{Path: "cds/cds.json", Data: []byte(`{"resources": []}`), Version: "1"}}}},
		Manifest: publish.Manifest{Format: "json", EnvoyPath: "/xds", Snapshot: "1"},
		Confirm:  change.Confirmer(),
	}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(change.Outcomes())
	// Output:
	// [unconfirmed: 0 of 1 Envoys acknowledged it; envoy unix:/nonexistent/admin.sock: is down: dial unix /nonexistent/admin.sock: connect: no such file or directory]
}
