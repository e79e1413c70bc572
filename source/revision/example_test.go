package revision_test

import (
	"context"
	"fmt"

	"xdspub/source/revision"
)

// A folder that no commit holds has no revision.
func Example() {
	fmt.Printf("%q\n", revision.Of(context.Background(), "/dev"))
	// Output: ""
}
