package doctor_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"xdspub/diag"
	"xdspub/doctor"
	"xdspub/render/publish"
	"xdspub/watch/status"
)

// Somebody has edited a published file.
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
		Steps: []publish.Step{{Name: "all", Write: []publish.File{
			{Path: "cds/cds.json", Data: []byte(`{"resources": []}`)}, {Path: "lds/lds.json", Data: []byte(`{"resources": []}`)},
		}}},
		Manifest: publish.Manifest{Format: "json", EnvoyPath: "/xds", Snapshot: "1"},
	}); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, "cds/cds.json"), []byte("{}"), 0o644); err != nil {
		log.Fatal(err)
	}
	report, err := doctor.Examine(ctx, doctor.Options{Status: status.Options{Out: out}})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range report.Findings {
		if d.Severity == diag.Error {
			fmt.Println(d.Code, d.Message)
		}
	}
	// Output:
	// edited-file 1 file edited, replaced or removed by hand: cds/cds.json; Envoy does not notice, and reads the edit at its next start
}
