package clients_test

import (
	"fmt"

	"xdspub/xds/clients"
)

// A client whose subscription has no existing resources is in sync.
func Example() {
	c := clients.Client{Node: "edge", Subscriptions: []clients.Subscription{{API: "CDS", Sync: clients.Synced}, {API: "RTDS", Sync: clients.NotSent}}}
	fmt.Println(c.InSync(), c.Count(clients.Synced))
	// Output:
	// true 1
}
