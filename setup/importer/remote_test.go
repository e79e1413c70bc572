package importer

import (
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/source/load"
)

// ofPlane imports resources in YAML as those of a control plane.
func ofPlane(t *testing.T, text string, bootstrap load.Input) *Imported {
	t.Helper()
	bootstrap.Streams = true
	read := load.AsWritten(load.Input{Name: "xds://plane", Format: "yaml", Data: []byte(text), Streams: true})
	if read.Diagnostics.HasErrors() {
		t.Fatal(read.Diagnostics)
	}
	return Remote{Name: "xds://plane", Kind: "control plane", Read: read, Bootstrap: bootstrap}.Import(Options{Root: "/etc/envoy"})
}

// findings returns the findings without their places.
func findings(imported *Imported) (list []string) {
	for _, d := range imported.Diagnostics {
		list = append(list, d.Message)
	}
	return list
}

// TestRemoteWrappers: wrappers stay, variants of a resource get a file each, and a relative path becomes absolute.
func TestRemoteWrappers(t *testing.T) {
	imported := ofPlane(t, `
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  resource_name: {name: web, dynamic_parameter_constraints: {constraint: {key: env, value: prod}}}
  resource: {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, connect_timeout: 1s}
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  resource_name: {name: web, dynamic_parameter_constraints: {constraint: {key: env, value: test}}}
  ttl: 60s
  resource: {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, connect_timeout: 2s}
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: ca
  validation_context: {trusted_ca: {filename: ca.pem}}
`, load.Input{})
	var names []string
	again := 0
	for _, f := range imported.Files {
		names = append(names, f.Name)
		read := load.AsWritten(load.Input{Name: f.Name, Format: "yaml", Data: f.Data, Streams: true})
		for _, r := range read.Resources() {
			if r.Meta.GetTtl() != nil || r.Meta.GetResourceName().GetDynamicParameterConstraints() != nil {
				again++
			}
		}
	}
	if diff := cmp.Diff([]string{"config/clusters/web.yaml", "config/clusters/web~2.yaml", "config/secrets/ca.yaml"}, names); diff != "" || again != 2 {
		t.Errorf("%d wrappers stay (-want +got):\n%s", again, diff)
	}
	if list := findings(imported); len(list) != 1 || !strings.Contains(list[0], `"ca.pem" becomes "/etc/envoy/ca.pem"`) {
		t.Errorf("%q", list)
	}
}

// TestRemoteBootstrap: a bootstrap in JSON loses what the source tree replaces, and static resources that ask an ADS
// server are reported.
func TestRemoteBootstrap(t *testing.T) {
	imported := ofPlane(t, `
- {"@type": type.googleapis.com/envoy.service.runtime.v3.Runtime, name: limits, layer: {a.b: 1}}
- {"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: main, vhds: {config_source: {ads: {}}}}
`, load.Input{Name: "node.json", Format: "json", Data: []byte(`{"node": {"id": "a"},
 "dynamic_resources": {"ads_config": {}, "cds_config": {"ads": {}}},
 "layered_runtime": {"layers": [{"name": "limits", "rtds_layer": {"name": "limits", "rtds_config": {"ads": {}}}}]},
 "static_resources": {"clusters": [{"name": "web", "type": "EDS", "eds_cluster_config": {"eds_config": {"ads": {}}}}]}}`)})
	want := []string{
		"dynamic_resources.ads_config is left out: the source tree replaces it",
		"dynamic_resources.cds_config is left out: the source tree replaces it",
		`runtime layer "limits" is left out of the bootstrap: the source tree has its values, and xdspub bootstrap envoy adds the layer behind the other layers`,
		`cluster "web" stays in the bootstrap, and asks an ADS server there: this works with a server, and not with files`,
		`the control plane has no virtual host of "main": route configuration "main" asks for it`,
	}
	if diff := cmp.Diff(want, findings(imported)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if imported.Bootstrap != "bootstrap.json" || imported.Resources != 2 || imported.Static != 1 {
		t.Errorf("%+v", imported)
	}
	text := string(imported.Files[len(imported.Files)-1].Data)
	if strings.Contains(text, "dynamic_resources") || strings.Contains(text, "layered_runtime") || !strings.Contains(text, `"web"`) {
		t.Error(text)
	}
}

// TestRemoteUnknownType: nothing is imported if a resource has a type that no file can hold.
func TestRemoteUnknownType(t *testing.T) {
	cluster := &clusterv3.Cluster{Name: "web", Metadata: &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{
		"acme": {TypeUrl: "type.googleapis.com/acme.v1.Quota", Value: []byte{8, 1}},
	}}}
	body, err := anypb.New(cluster)
	do(t, err)
	data, err := proto.Marshal(&discoveryv3.DiscoveryResponse{Resources: []*anypb.Any{body}})
	do(t, err)
	read := load.AsWritten(load.Input{Name: "xds://plane", Format: "pb", Data: data, Streams: true})
	imported := Remote{Name: "xds://plane", Kind: "control plane", Read: read}.Import(Options{})
	list := findings(imported)
	if len(list) != 1 || !strings.HasPrefix(list[0], `no file can hold cluster "web": `) || !strings.Contains(list[0], "acme.v1.Quota") || len(imported.Files) > 0 {
		t.Errorf("%q, %d files", list, len(imported.Files))
	}
}
