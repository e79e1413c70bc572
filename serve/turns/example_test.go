package turns_test

import (
	"context"
	"fmt"

	"xdspub/serve/turns"
)

// Work for a client takes turns with the work for other clients.
func Example() {
	all := turns.New(1)
	client := all.Client("192.0.2.1")
	func() {
		turn, err := client.Take(context.Background())
		if err != nil {
			return
		}
		defer turn.Give()
		fmt.Println("decode a request")
	}()
	// Output: decode a request
}
