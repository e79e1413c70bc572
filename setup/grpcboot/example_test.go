package grpcboot_test

import (
	"fmt"
	"log"

	"xdspub/setup/grpcboot"
)

// A bootstrap for the clients of one server.
func ExampleConfig_JSON() {
	config := grpcboot.Config{
		Servers: []grpcboot.Server{{URI: "127.0.0.1:18000", Credentials: []grpcboot.Credentials{{Type: "insecure"}}, Features: []string{"xds_v3"}}},
		Node:    grpcboot.Node{ID: "client-1"},
	}
	text, err := config.JSON()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", text)
	// Output:
	// {
	//   "xds_servers": [
	//     {
	//       "server_uri": "127.0.0.1:18000",
	//       "channel_creds": [
	//         {
	//           "type": "insecure"
	//         }
	//       ],
	//       "server_features": [
	//         "xds_v3"
	//       ]
	//     }
	//   ],
	//   "node": {
	//     "id": "client-1",
	//     "locality": {}
	//   }
	// }
}

// What is wrong with a bootstrap, and what a client asks for by it.
func ExampleParse() {
	r := grpcboot.Parse("b.json", []byte(`{"xds_servers": [{"server_uri": "127.0.0.1:18000", "channel_creds": [{"type": "mtls"}, {"type": "insecure"}]}],
"client_default_listener_resource_name_template": "clients/%s"}`))
	for _, d := range r.Diagnostics {
		fmt.Println(d)
	}
	asked, err := r.Config.Target("xds:///greeter")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(asked.Servers[0].URI, asked.Listener)
	// Output:
	// b.json:1:79: warning: no client knows channel credentials of type "mtls": clients skip the entry [grpc-bootstrap-ignored]
	// 127.0.0.1:18000 clients/greeter
}
