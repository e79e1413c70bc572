package xds_test

import (
	"fmt"
	"log"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/xds"
)

// Walk enters the payload of an Any. The path of the payload is the path of the Any.
func ExampleWalk() {
	tls, err := anypb.New(&tlsv3.UpstreamTlsContext{Sni: "web.example"})
	if err != nil {
		log.Fatal(err)
	}
	cluster := &clusterv3.Cluster{Name: "web", TransportSocket: &corev3.TransportSocket{
		Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: tls},
	}}
	xds.Walk(cluster, func(n *xds.Node) {
		if m, ok := n.Message.(*tlsv3.UpstreamTlsContext); ok {
			fmt.Println(n.Path().Field("sni"), "=", m.GetSni())
		}
	})
	// Output:
	// transport_socket.typed_config.sni = web.example
}

// Equal content has the same version on each machine.
func ExampleVersion() {
	for _, name := range []string{"web", "web", "api"} {
		data, err := xds.Marshal(&clusterv3.Cluster{Name: name})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(name, xds.Version([][]byte{data}))
	}
	// Output:
	// web vb97763a1c8b84f02
	// web vb97763a1c8b84f02
	// api vee9f27df18ea37e7
}
