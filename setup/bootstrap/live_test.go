package bootstrap_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	"xdspub/setup/bootstrap"
	"xdspub/tools/envoytest"
)

const patience = 2 * time.Minute // it only bounds a failing test

// envoy writes a bootstrap for a directory, and starts an Envoy with it.
func envoy(t *testing.T, o bootstrap.EnvoyOptions) *envoytest.Envoy {
	t.Helper()
	return envoytest.Start(t, envoytest.Options{Bootstrap: generate(t, o)})
}

func generate(t *testing.T, o bootstrap.EnvoyOptions) []byte {
	t.Helper()
	o.NodeID, o.NodeCluster = "test-1", "test"
	if o.Admin == "" {
		o.Admin = "127.0.0.1:0"
	}
	b, err := bootstrap.Envoy(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// output returns a published directory. CDS and LDS have no resources. Each layer has a Runtime with a key of its
// own.
func output(t *testing.T, layers ...string) string {
	t.Helper()
	dir := t.TempDir()
	publish(t, dir, "cds", "v1")
	publish(t, dir, "lds", "v1")
	for _, name := range layers {
		publish(t, dir, "rtds/"+name, name+"-v1", runtimeResource(name, `{"`+name+`.key": 1}`))
	}
	return dir
}

// publish writes FOLDER/KIND.json. KIND is the first element of FOLDER.
func publish(t *testing.T, dir, folder, version string, resources ...string) {
	t.Helper()
	kind, _, _ := strings.Cut(folder, "/")
	envoytest.Publish(t, filepath.Join(dir, folder, kind+".json"),
		fmt.Sprintf(`{"version_info": %q, "resources": [%s]}`, version, strings.Join(resources, ",")))
}

func runtimeResource(name, layer string) string {
	return fmt.Sprintf(`{"@type": "type.googleapis.com/envoy.service.runtime.v3.Runtime", "name": %q, "layer": %s}`, name, layer)
}

func clusterResource(name string, port int) string {
	return fmt.Sprintf(`{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": %[1]q, "load_assignment": {
		"cluster_name": %[1]q, "endpoints": [{"lb_endpoints": [{"endpoint": {
			"address": {"socket_address": {"address": "127.0.0.1", "port_value": %[2]d}}}}]}]}}`, name, port)
}

func listenerResource(name string, port int, cluster string) string {
	return fmt.Sprintf(`{"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": %[1]q,
		"address": {"socket_address": {"address": "127.0.0.1", "port_value": %[2]d}},
		"filter_chains": [{"filters": [{"name": "hcm", "typed_config": {
			"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
			"stat_prefix": %[1]q,
			"http_filters": [{"name": "router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}],
			"route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"],
				"routes": [{"match": {"prefix": "/"}, "route": {"cluster": %[3]q}}]}]}}}]}]}`, name, port, cluster)
}

// runtimeValue returns the value of a key in the runtime, or "".
func runtimeValue(t *testing.T, e *envoytest.Envoy, key string) string {
	t.Helper()
	var answer struct {
		Entries map[string]struct {
			Final string `json:"final_value"`
		}
	}
	if err := json.Unmarshal([]byte(e.Admin(t, "/runtime")), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Entries[key].Final
}

// reaches waits until the statistics of a scope have the values want. If they never do, it shows all statistics of
// the scope.
func reaches(t *testing.T, e *envoytest.Envoy, scope string, want map[string]string) {
	t.Helper()
	envoytest.Eventually(t, patience, fmt.Sprint(scope, " has ", want), func() (bool, string) {
		stats := e.Stats(t, "^"+scope+`\.`)
		for name, value := range want {
			if stats[scope+"."+name] != value {
				return false, fmt.Sprint(stats)
			}
		}
		return true, ""
	})
}

func TestLiveEnvoy(t *testing.T) {
	blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
	port := envoytest.FreePort(t)
	dir := output(t, "base")
	publish(t, dir, "cds", "v1", clusterResource("web", blue.Port()))
	publish(t, dir, "lds", "v1", listenerResource("ingress", port, "web"))

	e := envoy(t, bootstrap.EnvoyOptions{Dir: dir, RuntimeLayers: []bootstrap.RuntimeLayer{{Name: "base", Folder: "base"}}})
	if runtime.GOOS == "linux" {
		if got := e.InotifyInstances(t); got != 3 {
			t.Errorf("%d inotify instances, want one for each of cds, lds and rtds", got)
		}
	}
	clusters := e.ConfigDump(t, "dynamic_active_clusters")
	if text := fmt.Sprint(clusters); len(clusters) != 1 || !strings.Contains(text, "name:web") {
		t.Errorf("clusters: %s", text)
	}
	if listeners := e.ConfigDump(t, "dynamic_listeners"); len(listeners) != 1 || listeners[0]["name"] != "ingress" {
		t.Errorf("listeners: %v", listeners)
	}
	url := fmt.Sprintf("http://127.0.0.1:%d/", port)
	if status, body, err := envoytest.Get(t, url); status != 200 || body != "blue" || err != nil {
		t.Errorf("GET: %d %q %v", status, body, err)
	}

	publish(t, dir, "cds", "v2", clusterResource("web", green.Port()))
	reaches(t, e, "cluster_manager.cds", map[string]string{"version_text": "v2", "update_success": "2"})
	envoytest.Eventually(t, patience, "the new cluster answers", func() (bool, string) {
		status, body, err := envoytest.Get(t, url)
		return body == "green", fmt.Sprint(status, body, err)
	})

	if got := runtimeValue(t, e, "base.key"); got != "1" {
		t.Errorf("runtime value of base.key is %q, want 1", got)
	}
	// A value that an operator sets wins over published values.
	e.AdminPost(t, "/runtime_modify?base.key=7")
	if got := runtimeValue(t, e, "base.key"); got != "7" {
		t.Errorf("runtime value of base.key is %q after /runtime_modify, want 7", got)
	}
}

func TestLiveFormats(t *testing.T) {
	response := &discoveryv3.DiscoveryResponse{VersionInfo: "v1"}
	viaJSON := func(m proto.Message) ([]byte, error) {
		text, err := protojson.Marshal(m)
		if err != nil {
			return nil, err
		}
		return yaml.JSONToYAML(text)
	}
	for format, marshal := range map[string]func(proto.Message) ([]byte, error){
		"json":    protojson.Marshal,
		"yaml":    viaJSON,
		"pb":      proto.Marshal,
		"pb_text": prototext.Marshal,
	} {
		t.Run(format, func(t *testing.T) {
			content, err := marshal(response)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			envoytest.Publish(t, filepath.Join(dir, "cds/cds."+format), string(content))
			envoytest.Publish(t, filepath.Join(dir, "lds/lds."+format), string(content))
			e := envoy(t, bootstrap.EnvoyOptions{Dir: dir, Format: format})
			for _, scope := range []string{"cluster_manager.cds", "listener_manager.lds"} {
				if got := e.TextStat(t, scope+".version_text"); got != "v1" {
					t.Errorf("%s.version_text is %q, want v1", scope, got)
				}
			}
		})
	}
}

func TestLiveAdmin(t *testing.T) {
	t.Run("IPv6", func(t *testing.T) {
		l, err := net.Listen("tcp6", "[::1]:0")
		if err != nil {
			t.Skipf("no IPv6 here: %v", err)
		}
		l.Close()
		envoy(t, bootstrap.EnvoyOptions{Dir: output(t), Admin: "[::1]:0"})
	})
	t.Run("unix", func(t *testing.T) {
		// t.TempDir is too long: the path of a socket has at most 107 bytes.
		dir, err := os.MkdirTemp("", "xdspub-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		envoy(t, bootstrap.EnvoyOptions{Dir: output(t), Admin: "unix:" + filepath.Join(dir, "admin.sock")})
	})
}

// TestLiveMissingFile shows that Envoy does not start if a file of its bootstrap is missing. This is why xdspub
// publishes before Envoy starts, and never removes the cds, lds and rtds files.
func TestLiveMissingFile(t *testing.T) {
	for _, file := range []string{"cds/cds.json", "lds/lds.json", "rtds/base/rtds.json"} {
		t.Run(file, func(t *testing.T) {
			dir := output(t, "base")
			if err := os.Remove(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
			code, log := envoytest.Run(t, envoytest.Options{Bootstrap: generate(t, bootstrap.EnvoyOptions{
				Dir: dir, RuntimeLayers: []bootstrap.RuntimeLayer{{Name: "base", Folder: "base"}},
			})})
			want := fmt.Sprintf("paths must refer to an existing path in the system: '%s' does not exist", filepath.Join(dir, file))
			if code != 1 || !strings.Contains(log, want) {
				t.Errorf("exit code %d, want 1 and %q in\n%s", code, want, log)
			}
		})
	}
}

// TestLiveRuntime shows how Envoy reads the files of runtime layers.
func TestLiveRuntime(t *testing.T) {
	dir := output(t, "base", "canary")
	e := envoy(t, bootstrap.EnvoyOptions{Dir: dir, RuntimeLayers: []bootstrap.RuntimeLayer{
		{Name: "base", Folder: "base"}, {Name: "canary", Folder: "canary"},
	}})
	// All layers share a scope of statistics. Its version is that of the layer that was updated last.
	reaches(t, e, "runtime", map[string]string{
		"num_layers": "3", "update_success": "2", "version_text": "canary-v1",
	})

	// A Runtime without entries empties a layer.
	publish(t, dir, "rtds/base", "base-v2", runtimeResource("base", "{}"))
	reaches(t, e, "runtime", map[string]string{
		"update_success": "3", "version_text": "base-v2", "num_keys": "1",
		"update_rejected": "0", "update_failure": "0",
	})
	if base, canary := runtimeValue(t, e, "base.key"), runtimeValue(t, e, "canary.key"); base != "" || canary != "1" {
		t.Errorf("base.key is %q and canary.key %q, want none and 1", base, canary)
	}

	// Envoy refuses a file without a resource, and keeps the values.
	publish(t, dir, "rtds/canary", "canary-v2")
	reaches(t, e, "runtime", map[string]string{
		"update_rejected": "1", "update_failure": "0", "update_success": "3", "version_text": "base-v2",
	})
	if want := "Unexpected RTDS resource length, number of added resources 0"; !strings.Contains(e.Log(), want) {
		t.Errorf("the log has no %q", want)
	}
	if got := runtimeValue(t, e, "canary.key"); got != "1" {
		t.Errorf("canary.key is %q after a refused file, want 1", got)
	}
}

// TestLiveRuntimeStart: Envoy starts with an empty layer. It also starts with a file without a resource; the layer
// is then empty, and Envoy counts a rejection.
func TestLiveRuntimeStart(t *testing.T) {
	layers := []bootstrap.RuntimeLayer{{Name: "base", Folder: "base"}}
	for _, tt := range []struct {
		name      string
		resources []string
		want      map[string]string
	}{
		{"empty layer", []string{runtimeResource("base", "{}")}, map[string]string{"update_success": "1", "update_rejected": "0", "version_text": "v0"}},
		{"no resource", nil, map[string]string{"update_success": "0", "update_rejected": "1", "version_text": ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := output(t)
			publish(t, dir, "rtds/base", "v0", tt.resources...)
			reaches(t, envoy(t, bootstrap.EnvoyOptions{Dir: dir, RuntimeLayers: layers}), "runtime", tt.want)
		})
	}
}
