package codes_test

import (
	"fmt"

	"xdspub/cmd/codes"
	"xdspub/diag"
)

// The codes of all stages are sorted by their names.
func Example() {
	fmt.Println(diag.Names(codes.All())[0])
	// Output:
	// address-swap
}
