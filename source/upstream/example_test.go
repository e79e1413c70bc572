package upstream_test

import (
	"context"
	"fmt"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"xdspub/source/upstream"
)

// A control plane that does not answer.
func Example() {
	ctx, end := context.WithTimeout(context.Background(), time.Minute)
	defer end()
	u := upstream.New(upstream.Options{
		Name: "xds+unix:/nowhere", Servers: []upstream.Server{{Address: "unix:/nowhere"}}, Node: &corev3.Node{Id: "edge-1"},
	})
	go u.Run(ctx)
	_, err := u.Read(ctx)
	fmt.Println(err != nil, u.State().Connected)
	// Output: true false
}
