// Command backend serves gRPC's health service on ports of 127.0.0.1, and says its name in the
// metadata that ends each answer.
//
//	backend blue:8081 green:8082
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
)

type named struct {
	*health.Server
	name string
}

func (n named) Check(ctx context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	if err := grpc.SetTrailer(ctx, metadata.Pairs("backend", n.name)); err != nil {
		return nil, err
	}
	return n.Server.Check(ctx, r)
}

func main() {
	failed := make(chan error)
	for _, arg := range os.Args[1:] {
		name, port, _ := strings.Cut(arg, ":")
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			log.Fatal(err)
		}
		s := grpc.NewServer()
		grpc_health_v1.RegisterHealthServer(s, named{health.NewServer(), name})
		go func() { failed <- s.Serve(l) }()
		fmt.Println(name, port)
	}
	log.Fatal(<-failed)
}
