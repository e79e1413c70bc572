// Package initial has the files of a new directory: source trees that work, the bootstraps of their clients, and
// files for systemd, Compose, Kubernetes and CI.
//
// The files are the same in every directory. They name only two directories: /etc/xdspub, which is the new directory
// on a machine or in a container, and /var/lib/xdspub, the output directory.
//
//	files, err := initial.Files()
//	err = initial.Write("edge", files)
package initial

import (
	"embed"
	"fmt"
	"path"

	"xdspub/internal/addr"
	"xdspub/setup/bootstrap"
	"xdspub/setup/grpcboot"
)

// File is one file of a new directory.
type File struct {
	// Path is the path below the new directory, with slashes.
	Path string
	// Purpose tells in a few words what the file is for.
	Purpose string
	Data    []byte
}

// Values in the bootstraps that other files repeat.
const (
	// Published is the output directory.
	Published = "/var/lib/xdspub"
	// maxConnections fits the limit of open files in the systemd unit of Envoy.
	maxConnections = 10000
	// Admin is the address of Envoy's admin interface.
	Admin = "127.0.0.1:9901"
	// Server is the address at which xdspub serve listens for Envoys, GRPCServer that for gRPC programs.
	Server, GRPCServer = "127.0.0.1:18000", "127.0.0.1:18001"
)

//go:embed all:files
var written embed.FS

// contents lists all files, in the order in which a user may want to read them. A file without a function make is a
// file below the folder files.
var contents = []struct {
	path, purpose string
	make          func() ([]byte, error)
}{
	{"config/xdspub.yaml", "settings of the source tree config", nil},
	{"config/listeners.yaml", "where requests come in, by HTTP", nil},
	{"config/routes.yaml", "/healthz is answered by Envoy, all else by the cluster app", nil},
	{"config/clusters.yaml", "the cluster app", nil},
	{"config/endpoints.yaml", "where app runs: 127.0.0.1:8080", nil},
	{"grpc/xdspub.yaml", "settings of the source tree grpc", nil},
	{"grpc/app.yaml", "gRPC clients reach xds:///app at 127.0.0.1:9090", nil},
	{"bootstrap/envoy-files.yaml", "for an Envoy that reads " + Published, filesBootstrap},
	{"bootstrap/envoy-serve.yaml", "for an Envoy that asks " + Server, serveBootstrap},
	{"bootstrap/grpc.json", "for gRPC programs that ask " + GRPCServer, grpcBootstrap},
	{"systemd/xdspub.service", "a unit that publishes config", nil},
	{"systemd/envoy.service", "a unit for Envoy, which starts after it", nil},
	{"compose.yaml", "the same with Compose", nil},
	{"kustomization.yaml", "the same on Kubernetes", nil},
	{"kubernetes/deployment.yaml", "a pod of app, Envoy and xdspub", nil},
	{".github/workflows/xdspub.yaml", "a job that checks both trees", nil},
}

// Files returns the files of a new directory.
func Files() ([]File, error) {
	var list []File
	for _, c := range contents {
		data, err := func() ([]byte, error) {
			if c.make != nil {
				return c.make()
			}
			return written.ReadFile(path.Join("files", c.path))
		}()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.path, err)
		}
		list = append(list, File{Path: c.path, Purpose: c.purpose, Data: data})
	}
	return list, nil
}

// filesBootstrap returns the bootstrap of an Envoy that reads published files.
func filesBootstrap() ([]byte, error) {
	return bootstrap.Envoy(bootstrap.EnvoyOptions{Dir: Published, NodeID: "envoy", NodeCluster: "envoy", Admin: Admin, MaxConnections: maxConnections})
}

// serveBootstrap returns the bootstrap of an Envoy that asks a server.
func serveBootstrap() ([]byte, error) {
	address, err := addr.Parse(Server)
	if err != nil {
		return nil, err
	}
	return bootstrap.Envoy(bootstrap.EnvoyOptions{
		Transport: bootstrap.DeltaAggregated, Server: bootstrap.Server{Address: address, Cluster: bootstrap.DefaultCluster},
		NodeID: "envoy", NodeCluster: "envoy", Admin: Admin, MaxConnections: maxConnections,
	})
}

// grpcBootstrap returns the bootstrap of gRPC programs.
func grpcBootstrap() ([]byte, error) {
	c := grpcboot.Config{
		Servers: []grpcboot.Server{{URI: GRPCServer, Credentials: []grpcboot.Credentials{{Type: "insecure"}}, Features: []string{"xds_v3"}}},
		Node:    grpcboot.Node{ID: "grpc", Cluster: "grpc"},
	}
	return c.JSON()
}
