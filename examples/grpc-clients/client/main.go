// Command client calls a health service by gRPC, and prints the name of who answered.
//
//	GRPC_XDS_BOOTSTRAP=bootstrap.json client xds:///greeter
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	_ "google.golang.org/grpc/xds" // resolves xds:///
)

func main() {
	conn, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	var answered metadata.MD
	if _, err := grpc_health_v1.NewHealthClient(conn).Check(context.Background(), &grpc_health_v1.HealthCheckRequest{}, grpc.Trailer(&answered)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Join(answered.Get("backend"), ","))
}
