package pipeline_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/render"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/source/load"
	"xdspub/tools/fixture"
	"xdspub/watch/pipeline"
)

// probes are message types that count their decodings. A probe in an Any counts walks, because each walk
// decodes the Any once.
var probes = sync.OnceValues(func() (map[string]*probe, error) {
	file := &descriptorpb.FileDescriptorProto{Name: proto.String("probes.proto"), Package: proto.String("probes"), Syntax: proto.String("proto3")}
	for _, name := range []string{"Cluster", "EdsCluster", "Endpoints", "Listener", "HttpFilter", "Routes", "Static"} {
		file.MessageType = append(file.MessageType, &descriptorpb.DescriptorProto{Name: proto.String(name)})
	}
	fd, err := protodesc.NewFile(file, nil)
	if err != nil {
		return nil, err
	}
	all := make(map[string]*probe)
	for i := range fd.Messages().Len() {
		p := &probe{MessageType: dynamicpb.NewMessageType(fd.Messages().Get(i))}
		if err := protoregistry.GlobalTypes.RegisterMessage(p); err != nil {
			return nil, err
		}
		all[string(p.Descriptor().Name())] = p
	}
	return all, nil
})

type probe struct {
	protoreflect.MessageType
	made atomic.Int64
}

func (p *probe) New() protoreflect.Message {
	p.made.Add(1)
	return p.MessageType.New()
}

const probed = `[
{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "plain", "connect_timeout": "1s",
 "metadata": {"typed_filter_metadata": {"x": {"@type": "type.googleapis.com/probes.Cluster"}}}},
{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "eds", "type": "EDS", "eds_cluster_config": {"eds_config": {"ads": {}}},
 "metadata": {"typed_filter_metadata": {"x": {"@type": "type.googleapis.com/probes.EdsCluster"}}}},
{"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": "eds", "endpoints": [{"lb_endpoints": [
 {"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 8080}}},
  "metadata": {"typed_filter_metadata": {"x": {"@type": "type.googleapis.com/probes.Endpoints"}}}}]}]},
{"@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration", "name": "routes", "virtual_hosts": [{"name": "all", "domains": ["*"],
 "metadata": {"typed_filter_metadata": {"x": {"@type": "type.googleapis.com/probes.Routes"}}}}]},
{"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": "rds", "address": {"socket_address": {"address": "127.0.0.1", "port_value": 10000}},
 "metadata": {"typed_filter_metadata": {"x": {"@type": "type.googleapis.com/probes.Listener"}}},
 "filter_chains": [{"filters": [{"name": "hcm", "typed_config": {
  "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", "stat_prefix": "rds",
  "rds": {"route_config_name": "routes", "config_source": {"ads": {}}},
  "http_filters": [
   {"name": "set", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.set_metadata.v3.Config",
    "metadata": [{"metadata_namespace": "x", "typed_value": {"@type": "type.googleapis.com/probes.HttpFilter"}}]}},
   {"name": "router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}]}]},
{"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": "static", "address": {"socket_address": {"address": "127.0.0.1", "port_value": 10001}},
 "filter_chains": [{"filters": [{"name": "hcm", "typed_config": {
  "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", "stat_prefix": "static",
  "route_config": {"name": "own", "virtual_hosts": [{"name": "all", "domains": ["*"],
   "metadata": {"typed_filter_metadata": {"x": {"@type": "type.googleapis.com/probes.Static"}}}}]},
  "http_filters": [{"name": "router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}]}]}
]`

// TestWalks counts how often an Any is decoded while its resource passes all stages, and after edits. Reading
// a file decodes it once: protojson packs the decoded message, and a binary file is searched for unknown
// fields. One walk then serves facts, rules, versions and transitions. If a resource is bound, the binding
// walk serves facts and version. Each writer except the binary one decodes its output: a text is read back,
// and YAML is searched for numbers that Envoy would read as texts.
//
// An unloaded message is decoded again after its collection, such as the old version of an edited resource.
func TestWalks(t *testing.T) {
	all, err := probes()
	if err != nil {
		t.Fatal(err)
	}
	const read, walked = 1, 1
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // only the test collects
	written := map[*render.Format]int64{render.JSON: 1, render.YAML: 2, render.Binary: 0, render.Text: 2}
	bound := map[string]int64{"EdsCluster": 1, "Listener": 1, "HttpFilter": 1}
	for _, format := range []string{"json", "yaml", "pb"} {
		for _, out := range render.Formats {
			walks := func(t *testing.T, collected bool) {
				s := fixture.New(t, func(o *pipeline.Options) { o.Endpoints, o.Format = planner.EndpointsFile, out })
				if err := os.MkdirAll(s.Src, 0o755); err != nil {
					t.Fatal(err)
				}
				dir := s.Open()

				text := probed
				known := make(map[string][]byte)
				for _, step := range []struct {
					old, new string
					edited   []string
					again    map[string]int64 // decodings after a collection
				}{
					{"", "", slices.Collect(maps.Keys(all)), nil},
					{"8080", "8081", []string{"Endpoints"}, map[string]int64{"Endpoints": 1}},
					{`"1s"`, `"2s"`, []string{"Cluster"}, map[string]int64{"Cluster": 1}},
					{`"name": "own"`, `"name": "mine"`, []string{"Static"}, map[string]int64{"Cluster": 2}}, // the output was published before
					{`"stat_prefix": "rds"`, `"stat_prefix": "other"`, []string{"Listener", "HttpFilter"}, nil},
					{`["*"],
 "metadata"`, `["*.example"],
 "metadata"`, []string{"Routes"}, map[string]int64{"Routes": 1}},
				} {
					text = strings.ReplaceAll(text, step.old, step.new)
					var changed []string
					for name, data := range resourceFiles(t, text, format) {
						if path := filepath.Join(s.Src, name); !bytes.Equal(known[name], data) {
							known[name], changed = data, append(changed, path)
							if err := os.WriteFile(path, data, 0o644); err != nil {
								t.Fatal(err)
							}
						}
					}
					if collected {
						runtime.GC()
					}
					for _, p := range all {
						p.made.Store(0)
					}
					reconcile(t, s, dir, changed)
					for name, p := range all {
						want := int64(0)
						if slices.Contains(step.edited, name) {
							want = read + walked + bound[name] + written[out]
						}
						if collected {
							want += step.again[name]
						}
						if got := p.made.Load(); got != want {
							t.Errorf("%s for %s: what is in an Any of %s is decoded %d times, want %d", step.new, step.old, name, got, want)
						}
					}
				}
			}
			t.Run(format+" to "+out.Name, func(t *testing.T) { walks(t, false) })
			t.Run(format+" to "+out.Name+", collected", func(t *testing.T) { walks(t, true) })
		}
	}
}

// resourceFiles returns a file for each resource of a list in JSON.
func resourceFiles(t *testing.T, list, format string) map[string][]byte {
	response, result := load.Response(load.Input{Name: "list.json", Format: "json", Data: []byte(list)})
	if response == nil {
		t.Fatal(result.Diagnostics)
	}
	files := make(map[string][]byte)
	for i, a := range response.GetResources() {
		var data []byte
		var err error
		if format == "pb" {
			data, err = proto.MarshalOptions{Deterministic: true}.Marshal(&discoveryv3.DiscoveryResponse{Resources: []*anypb.Any{a}})
		} else if data, err = protojson.Marshal(a); err == nil {
			data, err = json.Marshal(json.RawMessage(data)) // protojson varies its spaces
		}
		if err != nil {
			t.Fatal(err)
		}
		files[fmt.Sprintf("%d.%s", i, format)] = data
	}
	return files
}

// reconcile publishes the tree like a watch that knows the changed files.
func reconcile(t *testing.T, s *fixture.Fixture, dir *publish.Dir, changed []string) {
	checked, err := s.Checked.Update(t.Context(), changed)
	if err != nil || !checked.Accepted() {
		t.Fatal(err, checked)
	}
	plan, list, err := s.P.Plan(t.Context(), checked.Snapshot, s.Now)
	if err != nil || len(list) > 0 {
		t.Fatal(err, list)
	}
	if _, err := s.P.Publish(t.Context(), dir, plan); err != nil {
		t.Fatal(err)
	}
	s.P.Trust(true)
}
