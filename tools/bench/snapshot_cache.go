package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"

	"xdspub/source/load"
	"xdspub/tools/sample"
	"xdspub/xds"
)

// snapshotCache and staticCache are first arguments of a process that is a server of go-control-plane. The clusters of
// snapshotCache ask for their endpoints, those of staticCache have an endpoint each. The other arguments are SOCKET
// FILE CLUSTERS. After SIGHUP, the cluster of FILE replaces the cluster of the same name.
const snapshotCache, staticCache = "snapshot-cache", "static-cache"

// clusterOf returns the i-th cluster of snapshotCache or staticCache; change varies it.
func clusterOf(kind string, i, change int) string {
	if kind == staticCache {
		return strings.Replace(sample.Part(i, 1), "connect_timeout: 1s", fmt.Sprintf("connect_timeout: %ds", 1+change), 1)
	}
	return sample.Topology{}.Cluster(i, change)
}

func serveSnapshotCache(args []string) error {
	kind, socket, edited := args[0], args[1], args[2]
	n, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	clusters, place := make([]types.Resource, n), make(map[string]int, n)
	set := func(i int, text string) error {
		list := load.Parse(load.Input{Name: "cluster.yaml", Format: "yaml", Data: []byte(text)}).Snapshot().Of(xds.Cluster)
		if len(list) != 1 {
			return fmt.Errorf("%d clusters in %q", len(list), text)
		}
		if i < 0 {
			i = place[list[0].Name]
		}
		place[list[0].Name] = i
		clusters[i] = list[0].Message()
		return nil
	}
	for i := range n {
		if err := set(i, clusterOf(kind, i, 0)); err != nil {
			return err
		}
	}
	ctx := context.Background()
	c := cache.NewSnapshotCache(true, cache.IDHash{}, nil)
	publish := func(version int) error {
		s, err := cache.NewSnapshot(fmt.Sprint(version), map[resource.Type][]types.Resource{resource.ClusterType: clusters})
		if err != nil {
			return err
		}
		return c.SetSnapshot(ctx, "client", s)
	}
	if err := publish(0); err != nil {
		return err
	}
	g := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, server.NewServer(ctx, c, nil))
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(l) }()
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	for version := 1; ; {
		select {
		case err := <-ended:
			return err
		case <-hangup:
		}
		text, err := os.ReadFile(edited)
		if err != nil {
			return err
		}
		if err := set(-1, string(text)); err != nil {
			return err
		}
		if err := publish(version); err != nil {
			return err
		}
		version++
	}
}
