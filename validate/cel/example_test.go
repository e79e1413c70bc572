package cel_test

import (
	"fmt"

	"xdspub/validate/cel"
)

// Check knows the grammar, and which functions Envoy has.
func ExampleCheck() {
	for _, text := range []string{`request.method == "GET"`, `request.path.split("/")[1] == "api"`, `request.method ==`} {
		fmt.Println(cel.Check(text, cel.Options{}))
	}
	// Output:
	// <nil>
	// split() wants enable_string_functions in a cel_config
	// mismatched input the end, at character 18
}
