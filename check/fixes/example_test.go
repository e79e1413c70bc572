package fixes_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"xdspub/check"
	"xdspub/check/fixes"
	"xdspub/diag"
	"xdspub/source/load"
)

// The fix of a misspelt field, as a diff.
func Example() {
	run := fixes.New(false)
	defer run.Close()
	run.Add(diag.StandardInput, []byte(`"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: web
conect_timeout: 1s # the network is near
`))
	judge := func() (*check.Result, error) {
		in := load.Input{Name: diag.StandardInput, Format: "yaml", Data: run.Text(diag.StandardInput)}
		return check.Once(context.Background(), check.Options{Path: "-", Input: &in})
	}
	found, err := judge()
	if err != nil {
		log.Fatal(err)
	}
	if found, err = run.Fix(found, fixes.Scope{}, judge); err != nil {
		log.Fatal(err)
	}
	if _, err := run.Diff(os.Stdout); err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Summary.Errors, "errors")
	// Output:
	// diff a/<stdin> b/<stdin>
	// --- a/<stdin>
	// +++ b/<stdin>
	// @@ -1,3 +1,3 @@
	//  "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
	//  name: web
	// -conect_timeout: 1s # the network is near
	// +connect_timeout: 1s # the network is near
	// 0 errors
}
