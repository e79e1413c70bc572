package store_test

import (
	"fmt"

	"xdspub/store"
)

// An Address names the servers of an etcd, and the prefix of all keys.
func ExampleParseAddress() {
	a, err := store.ParseAddress("etcd://10.0.0.1:2379,10.0.0.2:2379/fleet/prod")
	fmt.Println(a.Endpoints, a.Prefix, err)
	_, err = store.ParseAddress("etcd://10.0.0.1:2379")
	fmt.Println(err)
	// Output:
	// [10.0.0.1:2379 10.0.0.2:2379] /fleet/prod <nil>
	// the prefix "" is invalid: write etcd://HOST:PORT/PREFIX, with letters, digits, _, ., - and single slashes
}
