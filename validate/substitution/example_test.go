package substitution_test

import (
	"fmt"

	"xdspub/validate/substitution"
)

// A format string is judged with the commands that its formatters add.
func ExampleCheck() {
	for _, format := range []string{"%REQ(:METHOD)% %RESPONSE_CODE%", "%REQUEST(:METHOD)%", "%SECRET(token)%"} {
		fmt.Println(format)
		for _, fault := range substitution.Check(format, substitution.Extensions{}) {
			fmt.Println("  " + fault.Message)
		}
	}
	// Output:
	// %REQ(:METHOD)% %RESPONSE_CODE%
	// %REQUEST(:METHOD)%
	//   %REQUEST(:METHOD)%: unknown command
	// %SECRET(token)%
	//   %SECRET(token)%: unknown command
}
