package status_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"xdspub/render/publish"
	"xdspub/watch/status"
)

// A published file that somebody has edited by hand is not in sync.
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
	ctx := context.Background()
	if _, err := dir.Publish(ctx, publish.Plan{
		Steps:    []publish.Step{{Name: "clusters", Write: []publish.File{{Path: "cds/cds.json", Data: []byte(`{"resources": []}`)}}}},
		Manifest: publish.Manifest{Format: "json", EnvoyPath: "/xds", Snapshot: "1"},
	}); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		report, err := status.Of(ctx, status.Options{Out: out})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(report.Published.Snapshot, report.InSync, report.Drifted)
		if err := os.WriteFile(filepath.Join(out, "cds/cds.json"), []byte("{}"), 0o644); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 1 false []
	// 1 false [cds/cds.json]
}

// Verdict returns the faults of a Status in one line.
func ExampleStatus_Verdict() {
	s := &status.Status{Report: &status.Report{Drifted: []string{"cds/cds.json"}}, WatchState: status.WatchKilled}
	fmt.Println(s.Verdict())
	// Output:
	// not in sync: nothing is published; 1 file changed by hand; the watch was killed
}
