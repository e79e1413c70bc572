package cel_test

import (
	"fmt"

	"xdspub/validate/cel"
)

// Check knows the grammar, and gets the functions of an Envoy version.
func ExampleCheck() {
	functions := cel.Functions{
		Global: map[string][]int{"size": {1}}, Receiver: map[string][]int{"startsWith": {1}},
		StringReceiver: map[string][]int{"split": {1, 2}},
	}
	for _, text := range []string{`request.method == "GET"`, `request.path.split("/")[1] == "api"`, `request.method ==`} {
		fmt.Println(cel.Check(text, cel.Options{Functions: functions}))
	}
	// Output:
	// <nil>
	// split() needs enable_string_functions in a cel_config
	// mismatched input the end, at character 18
}
