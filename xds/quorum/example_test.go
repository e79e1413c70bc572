package quorum_test

import (
	"fmt"
	"log"

	"xdspub/xds/quorum"
)

// Of fewer answering Envoys than the number, all must acknowledge.
func Example() {
	q, err := quorum.Parse("3")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(q.Of(5), q.Of(2))
	// Output:
	// 3 2
}
