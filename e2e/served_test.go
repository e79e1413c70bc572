package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/tools/envoytest"
)

// servedTree is a source tree, and an xdspub serve that serves the tree.
type servedTree struct {
	fixture
	address string // of the server
	socket  string // the path of a Unix socket, on which a server may listen, too
	server  *process
}

// serveTree returns a servedTree, which is not started.
func serveTree(t *testing.T, source map[string]string) *servedTree {
	t.Helper()
	dir := shortDir(t)
	s := &servedTree{
		fixture: fixture{src: filepath.Join(dir, "src")},
		address: address(envoytest.FreePort(t)), socket: filepath.Join(dir, "xds.sock"),
	}
	for name, text := range source {
		s.write(t, name, text)
	}
	return s
}

// start starts the server, and waits for the first Snapshot.
func (s *servedTree) start(t *testing.T, flags ...string) {
	t.Helper()
	s.begin(t, flags...)
	s.server.WaitLog(t, "event=published ")
}

// begin is start without the wait, for a source tree that may be invalid.
func (s *servedTree) begin(t *testing.T, flags ...string) {
	t.Helper()
	args := append([]string{"serve", "--grpc", s.address, "--quiet-period", "20ms"}, flags...)
	s.server = start(t, watcher, append(args, s.src)...)
}

// kill ends the server by SIGKILL.
func (s *servedTree) kill(t *testing.T) {
	t.Helper()
	s.server.Signal(t, syscall.SIGKILL)
	s.server.Wait(t)
}

// grpcBootstrap returns the bootstrap of a gRPC client or server, written by xdspub bootstrap grpc.
func (s *servedTree) grpcBootstrap(t *testing.T, node string, flags ...string) []byte {
	t.Helper()
	args := []string{
		"bootstrap", "grpc", "--node-id", node, "--node-cluster", "interop", "--node-locality", "r",
		"--server-listener", "grpc/server?xds.resource.listening_address=%s",
	}
	text, stderr, status := xdspub(t, append(append(args, flags...), "--server", s.address)...)
	if status != 0 || stderr != "" {
		t.Fatalf("exit status %d\n%s", status, stderr)
	}
	return []byte(text)
}

// transports are the variants of the protocol by which an Envoy gets all resources from a server.
var transports = []transport{
	{"ads", "GRPC", true}, {"delta-ads", "DELTA_GRPC", true}, {"grpc", "GRPC", false}, {"delta-grpc", "DELTA_GRPC", false},
}

type transport struct {
	name, api  string
	aggregated bool
}

// served turns a bootstrap of an Envoy that reads files into a bootstrap of an Envoy that gets all resources from
// the server.
func (s *servedTree) served(t *testing.T, byFiles []byte, k transport) []byte {
	t.Helper()
	var bootstrap map[string]any
	decodeYAML(t, byFiles, &bootstrap)
	bootstrap["admin"] = map[string]any{"address": map[string]any{"socket_address": map[string]any{"address": "127.0.0.1", "port_value": 0}}}
	api := map[string]any{"api_type": k.api, "transport_api_version": "V3", "grpc_services": []any{map[string]any{"envoy_grpc": map[string]any{"cluster_name": "xds_cluster"}}}}
	source := map[string]any{"api_config_source": api, "resource_api_version": "V3"}
	if k.aggregated {
		source = map[string]any{"ads": map[string]any{}, "resource_api_version": "V3"}
		bootstrap["dynamic_resources"].(map[string]any)["ads_config"] = api
	}
	bootstrap = replaceSources(bootstrap, source).(map[string]any)
	var cluster any
	decodeYAML(t, fmt.Appendf(nil, `
name: xds_cluster
typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {}}}}
load_assignment: {cluster_name: xds_cluster, endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: %s}}}}]}]}
`, s.socket), &cluster)
	bootstrap["static_resources"] = map[string]any{"clusters": []any{cluster}}
	text, err := json.Marshal(bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// replaceSources returns a configuration with source in place of each config source.
func replaceSources(v, source any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, by := range []string{"path_config_source", "ads", "api_config_source"} {
			if _, is := v[by]; is {
				return source
			}
		}
		for key := range maps.Keys(v) {
			v[key] = replaceSources(v[key], source)
		}
	case []any:
		for i := range v {
			v[i] = replaceSources(v[i], source)
		}
	}
	return v
}

// TestServedAsByFiles has Envoys get a tree by each of the transports. Each runs the configuration of an Envoy that
// reads the tree from files.
func TestServedAsByFiles(t *testing.T) {
	envoytest.Binary(t)
	blue, green := envoytest.NewUpstream(t, "blue").Port(), envoytest.NewUpstream(t, "green").Port()
	trees := map[string]map[string]string{
		"every type": everyType(blue, green, envoytest.FreePort(t), envoytest.FreePort(t), envoytest.FreePort(t), newPair(t, "first")),
	}
	for _, name := range []string{"quickstart", "static-import", "multi", "kubernetes", "legacy", "ads"} {
		trees[name] = nil
	}
	for name, source := range trees {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveTree(t, source)
			if source == nil {
				s.src = newExample(t, name, 10000, 10001, 10080).tree(t)
			}
			s.out, s.admin = filepath.Join(t.TempDir(), "out"), envoytest.FreePort(t)
			if _, stderr, exit := xdspub(t, "render", "--eds", "file", "--out", s.out, s.src); exit != 0 {
				t.Fatalf("exit status %d\n%s", exit, stderr)
			}
			bootstrap := s.bootstrap(t)
			byFiles := envoytest.Start(t, envoytest.Options{Bootstrap: bootstrap})
			want := configuration(t, byFiles)
			byFiles.Stop(t)
			s.start(t, "--grpc", "unix:"+s.socket)
			for _, k := range transports {
				envoy := envoytest.Start(t, envoytest.Options{Bootstrap: s.served(t, bootstrap, k)})
				s.runs(t, k, envoy, want)
				content(t, envoy)
				envoy.Stop(t)
			}
		})
	}
}

// runs waits until the configuration of an Envoy is want.
func (s *servedTree) runs(t *testing.T, k transport, envoy *envoytest.Envoy, want map[string][]string) {
	t.Helper()
	envoytest.Eventually(t, patience, "an Envoy by "+k.name+" runs what one runs that reads files", func() (bool, string) {
		diff := cmp.Diff(want, configuration(t, envoy))
		return diff == "", "(-by files +by " + k.name + ")\n" + diff
	})
}

// configuration returns the configuration that an Envoy runs, in a form that does not depend on the transport:
// without config sources, and with the routes of scopes beside the scopes, in which files have them inlined.
func configuration(t *testing.T, e *envoytest.Envoy) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	add := func(kind string, v any) {
		data, err := json.MarshalIndent(replaceSources(outlined(v), "any"), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if text := string(data); !strings.Contains(text, `"xds_cluster"`) {
			all[kind] = append(all[kind], text)
		}
	}
	for kind, list := range runs(t, e) {
		for _, text := range list {
			var section map[string]any
			if err := json.Unmarshal([]byte(text), &section); err != nil {
				t.Fatal(err)
			}
			scopes, _ := section["scoped_route_configs"].([]any)
			for _, scope := range scopes {
				if scope := scope.(map[string]any); scope["route_configuration"] != nil {
					routes := scope["route_configuration"].(map[string]any)
					delete(scope, "route_configuration")
					scope["route_configuration_name"] = routes["name"]
					routes["@type"] = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
					add("dynamic_route_configs", map[string]any{"route_config": routes})
				}
			}
			add(kind, section)
		}
	}
	for _, list := range all {
		slices.Sort(list)
	}
	return all
}

// outlined removes the fields that a configuration has only with inlined virtual hosts and routes, as in files, or
// only without.
func outlined(v any) any {
	eachObject(v, func(o map[string]any) {
		delete(o, "vhds")
		delete(o, "rds_config_source")
		if o["validate_clusters"] == false {
			delete(o, "validate_clusters")
		}
	})
	return v
}

// eachObject calls f with each object of a JSON value, the outer ones first.
func eachObject(v any, f func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		f(v)
		for _, of := range v {
			eachObject(of, f)
		}
	case []any:
		for _, of := range v {
			eachObject(of, f)
		}
	}
}
