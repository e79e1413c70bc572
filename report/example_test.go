package report_test

import (
	"fmt"
	"log"

	"xdspub/diag"
	"xdspub/report"
)

// A finding is the same one after its lines moved.
func ExampleFingerprints() {
	root, err := report.NewRoot("/srv/config")
	if err != nil {
		log.Fatal(err)
	}
	was := diag.Diagnostic{Code: "unknown-field", Position: diag.Position{File: "/srv/config/a.yaml", Line: 3}, Message: `unknown field "nmae"`}
	is := was
	is.Line = 40
	fmt.Println(report.Fingerprints(diag.List{was}, root)[0] == report.Fingerprints(diag.List{is}, root)[0])
	fmt.Println(root.Path("/srv/config/envoy/a.yaml"))
	// Output:
	// true
	// envoy/a.yaml true
}
