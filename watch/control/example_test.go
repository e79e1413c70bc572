package control_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"xdspub/watch/control"
)

// A watch answers on a socket in its output directory.
func Example() {
	out, err := os.MkdirTemp("", "xdspub")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(out)
	if err := os.Mkdir(filepath.Join(out, ".xdspub"), 0o700); err != nil { // Publish creates the folder
		log.Fatal(err)
	}
	server := control.New(nil)
	defer server.Close()
	if err := server.Bind(out); err != nil {
		log.Fatal(err)
	}
	server.Tell(control.Watch{PID: 7, Source: "/etc/envoy/tree", Out: out, Snapshot: "v1"})
	go func() {
		for r := range server.Requests() { // somebody asks for a retry
			r.Answer(control.Result{Outcome: control.Published, Snapshot: "v2", Message: "it is out"})
		}
	}()

	ctx := context.Background()
	w, err := control.Ask(ctx, out)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("watches", w.Source, "and has published", w.Snapshot)
	result, err := control.Retry(ctx, out, control.RetryHeld{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Outcome, result.Snapshot)
	// Output:
	// watches /etc/envoy/tree and has published v1
	// published v2
}
