package quorum_test

import (
	"fmt"
	"log"

	"xdspub/xds/quorum"
)

// A number is that of those that answer at most.
func Example() {
	q, err := quorum.Parse("3")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(q.Of(5), q.Of(2))
	// Output:
	// 3 2
}
