package uritemplate_test

import (
	"fmt"

	"xdspub/validate/uritemplate"
)

// Match reads the path_template of a route.
func ExampleMatch() {
	for _, template := range []string{"/users/{id}/files/{path=**}", "/{a}/{a}", "/**/x/**"} {
		fmt.Println(uritemplate.Match(template, true))
	}
	// Output:
	// [id path] <nil>
	// [] duplicate name "a"
	// [] a wildcard or variable follows **
}
