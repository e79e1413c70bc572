package re2_test

import (
	"fmt"

	"xdspub/validate/re2"
)

// Envoy refuses a pattern by the number of its instructions.
func ExampleCompile() {
	for _, pattern := range []string{"/api/.*", "/(?:[a-z]{1,20}/){1,20}", "/(?!api)"} {
		program, err := re2.Compile(pattern, re2.Latin1)
		fmt.Println(pattern, program.Size, err)
	}
	// Output:
	// /api/.* 11 <nil>
	// /(?:[a-z]{1,20}/){1,20} 824 <nil>
	// /(?!api) 0 invalid or unsupported Perl syntax: `(?!`
}
