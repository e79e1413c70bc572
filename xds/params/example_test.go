package params_test

import (
	"fmt"

	"xdspub/xds/params"
)

func ExampleSpace() {
	prod := params.And(params.Value("env", "prod"), params.Not(params.Exists("canary")))
	eu := params.And(params.Value("env", "prod"), params.Value("region", "eu"))
	space := params.NewSpace(prod, eu)
	both, _ := space.Example(space.And(space.Of(prod), space.Of(eu)))
	fmt.Printf("%s, and %s: both match %s\n", prod, eu, both)
	fmt.Println(prod.Matches(params.Parameters{"env": "prod", "version": "v2"}))
	// Output:
	// env=prod and not canary, and env=prod and region=eu: both match env=prod, region=eu
	// true
}
