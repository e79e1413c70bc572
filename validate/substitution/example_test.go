package substitution_test

import (
	"fmt"

	"xdspub/diag"
	"xdspub/validate/substitution"
)

// Check judges a format by the commands of a version, and by the commands that formatters add.
func ExampleLanguage_Check() {
	language := &substitution.Language{
		BuiltIn: map[string][]string{"REQ": {"argument", "length", "headers"}, "RESPONSE_CODE": {"plain"}},
		Names:   diag.NewCandidates([]string{"REQ", "RESPONSE_CODE"}),
	}
	for _, format := range []string{"%REQ(:METHOD)% %RESPONSE_CODE%", "%REQUEST(:METHOD)%", "%SECRET(token)%"} {
		fmt.Println(format)
		for _, fault := range language.Check(format, substitution.Extensions{}) {
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
