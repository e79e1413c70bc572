package diag_test

import (
	"log"
	"os"

	"xdspub/diag"
)

// A program of its own reports what it has found as xdspub does.
func Example() {
	list := diag.List{{
		Code: "unknown-field", Severity: diag.Error,
		Position: diag.Position{File: "web.yaml", Line: 3, Column: 1},
		Message:  `unknown field "conect_timeout"`,
		Help:     "did you mean " + diag.NewCandidates([]string{"connect_timeout", "name"}).Nearest("conect_timeout") + "?",
	}, {
		Code: "empty-file", Severity: diag.Warning,
		Position: diag.Position{File: "a.yaml"},
		Message:  "the file holds no resource",
	}}
	if err := diag.WriteText(os.Stdout, list.Sort(), diag.TextOptions{}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// a.yaml: warning: the file holds no resource [empty-file]
	// web.yaml:3:1: error: unknown field "conect_timeout" [unknown-field]
	//     help: did you mean connect_timeout?
}
