package grpcboot_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/setup/grpcboot"
)

// misspelt has each fault on its own line.
const misspelt = `{
  "xds_servers": [
    {
      "serverUri": "127.0.0.1:18000",
      "server_uri": "https://127.0.0.1:18000",
      "channel_creds": [{"type": "TLS"}, {"type": "insecure"}],
      "server_features": ["xds-v3"]
    }
  ],
  "node": {"id": "a", "server_uri": 1, "sub_zone": "s"},
  "certificate_providers": {"own": {"plugin_name": "filewatcher"}},
  "client_default_listener_resource_name_template": "xdstp://prod/%s",
  "authorities": {
    "prod": {"client_listener_resource_name_template": "xdstp://test/envoy.config.listener.v3.Listener/%s"}
  }
}
`

// TestPlaces: each finding has its place, and help.
func TestPlaces(t *testing.T) {
	r := grpcboot.Parse("b.json", []byte(misspelt))
	var got []string
	for _, d := range r.Diagnostics {
		got = append(got, fmt.Sprintf("%s %s | %s", d.Position, d.Path, d.Help))
	}
	want := []string{
		`b.json:4:7 xds_servers[0]["serverUri"] | did you mean server_uri?`,
		`b.json:5:21 xds_servers[0].server_uri | write HOST:PORT, dns:///HOST:PORT or unix:PATH; whether TLS is used is said by channel_creds`,
		`b.json:6:34 xds_servers[0].channel_creds[0].type | did you mean tls?`,
		`b.json:7:27 xds_servers[0].server_features[0] | did you mean xds_v3?`,
		`b.json:10:23 node["server_uri"] | it is a field of an entry of xds_servers`,
		`b.json:10:40 node["sub_zone"] | it is a field of locality`,
		`b.json:11:52 certificate_providers["own"].plugin_name | did you mean file_watcher?`,
		`b.json:12:53 client_default_listener_resource_name_template | write xdstp://AUTHORITY/envoy.config.listener.v3.Listener/%s`,
		`b.json:14:56 authorities["prod"].client_listener_resource_name_template | write xdstp://prod/envoy.config.listener.v3.Listener/%s, or leave the template out`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if line, ok := r.Line(r.Diagnostics[0].Position); !ok || !strings.Contains(line, "serverUri") {
		t.Errorf("the line is %q", line)
	}
}

// TestRoundTrip: a written bootstrap is read as the same Config, without findings.
func TestRoundTrip(t *testing.T) {
	want := &grpcboot.Config{
		Servers: []grpcboot.Server{
			{URI: "dns:///xds.example:18000", Credentials: []grpcboot.Credentials{{Type: "tls", Config: &grpcboot.Files{CA: "/ca", Certificate: "/c", Key: "/k", RefreshInterval: "60s"}}, {Type: "insecure"}}, Features: []string{"xds_v3", "ignore_resource_deletion"}},
			{URI: "unix:/run/xds.sock", Credentials: []grpcboot.Credentials{{Type: "google_default"}}},
		},
		Node:           grpcboot.Node{ID: "a<b>&", Cluster: "b", Locality: grpcboot.Locality{Region: "r", Zone: "z", SubZone: "s"}, Metadata: []byte(`{"a":[1]}`)},
		Providers:      map[string]grpcboot.Provider{"own": {Plugin: grpcboot.FileWatcher, Config: &grpcboot.Files{CA: "/ca"}}},
		ServerTemplate: "grpc/server?xds.resource.listening_address=%s",
		ClientTemplate: "xdstp://prod/envoy.config.listener.v3.Listener/%s",
		Authorities: map[string]grpcboot.Authority{
			"prod": {Template: "xdstp://prod/envoy.config.listener.v3.Listener/a/%s", Servers: []grpcboot.Server{{URI: "127.0.0.1:1", Credentials: []grpcboot.Credentials{{Type: "insecure"}}}}},
			"":     {},
		},
	}
	text, err := want.JSON()
	if err != nil {
		t.Fatal(err)
	}
	r := grpcboot.Parse("b.json", text)
	for _, d := range r.Diagnostics {
		t.Error(d)
	}
	r.Config.Node.Metadata = bytes.Join(bytes.Fields(r.Config.Node.Metadata), nil)
	if diff := cmp.Diff(want, r.Config); diff != "" {
		t.Error(diff)
	}
}

// TestHolds: which files are bootstraps of gRPC.
func TestHolds(t *testing.T) {
	for text, want := range map[string]bool{
		`{"xds_servers": []}`:                                   true,
		`{"node": {}, "xds_servers": [`:                         true,
		"\ufeff" + `{"authorities": {}}`:                        true,
		`{"certificate_providers": {}, "xds_server": []}`:       true,
		`{"node": {"xds_servers": []}}`:                         false,
		`{"xds_servers": [], "static_resources": {}}`:           false,
		`{"static_resources": {}, "xds_servers": []}`:           false,
		`{"@type": "a", "xds_servers": []}`:                     false,
		`{"node": {}`:                                           false,
		`["xds_servers"]`:                                       false,
		`"xds_servers"`:                                         false,
		``:                                                      false,
		"xds_servers: []\n":                                     false,
		`{"xds_servers": [], "resources": ` + "[]}":             false,
		`{"server_listener_resource_name_template": "a"} more`:  true,
		`{"client_default_listener_resource_name_template": 1}`: true,
	} {
		path := filepath.Join(t.TempDir(), "b.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := grpcboot.Holds(path); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
	if grpcboot.Holds(t.TempDir()) {
		t.Error("a folder")
	}
}

// TestHostile: a hostile file costs little time, and has a bounded number of findings.
func TestHostile(t *testing.T) {
	var unknown strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&unknown, `"a%d":1,`, i)
	}
	for name, text := range map[string]string{
		"unknown fields": `{` + unknown.String() + `"node": {}}`,
		"servers":        `{"xds_servers": [` + strings.Repeat(`null,`, 200_000) + `null]}`,
		"features":       features(`[` + strings.Repeat(`"a",`, 200_000) + `"a"]`),
		"deep":           `{"xds_servers": ` + strings.Repeat(`[`, 500_000),
		"deep and whole": with(`"node": {"metadata": ` + strings.Repeat(`{"a":`, 9_000) + `1` + strings.Repeat(`}`, 9_000) + `}`),
		"quoted":         with(`"node": {"metadata": {"a\\"[": 1}}, "b": "` + strings.Repeat(`[`, 300) + `"`),
		"controls":       "{\"xds_servers\": [], \"\\u001b[31m\": 1}",
	} {
		r := grpcboot.Parse("b.json", []byte(text))
		if n := len(r.Diagnostics); n == 0 || n > 2002 {
			t.Errorf("%s: %d findings", name, n)
		}
		for _, d := range r.Diagnostics {
			if strings.Contains(d.Message, "\x1b") {
				t.Errorf("%s: %q", name, d.Message)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "b.json")
	if err := os.WriteFile(path, make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := grpcboot.Read(path); err == nil || !strings.Contains(err.Error(), "the limit is 1048576") {
		t.Errorf("a file of more than a MiB: %v", err)
	}
}
