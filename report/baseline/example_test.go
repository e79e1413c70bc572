package baseline_test

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"xdspub/diag"
	"xdspub/report"
	"xdspub/report/baseline"
)

// Of two findings one is known.
func Example() {
	root, err := report.NewRoot("/srv")
	if err != nil {
		log.Fatal(err)
	}
	known := diag.Diagnostic{Code: "weight-sum", Position: diag.Position{File: "/srv/a.yaml", Line: 3}, Message: "the weights are 0"}
	var b bytes.Buffer
	if err := baseline.Write(&b, []diag.List{{known}}, root); err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "baseline")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "baseline.json")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
	read, err := baseline.Read(path)
	if err != nil {
		log.Fatal(err)
	}
	known.Line = 30
	fresh := known
	fresh.File = "/srv/b.yaml"
	for _, d := range read.Left(diag.List{known, fresh}, root) {
		fmt.Println(d)
	}
	// Output:
	// /srv/b.yaml:30: error: the weights are 0 [weight-sum]
}
