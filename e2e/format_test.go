package e2e

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	"xdspub/render"
	"xdspub/tools/envoytest"
	"xdspub/tools/portion"
	_ "xdspub/xds/alltypes" // to decode published files
)

// inFormats runs a test for the formats of the published files, in parallel. A sample has one of the four formats,
// chosen by the name of the test, so that all tests together have each format.
func inFormats(t *testing.T, test func(t *testing.T, format string)) {
	t.Parallel()
	every := portion.Every(4, 4)
	first := int(crc32.ChecksumIEEE([]byte(t.Name()))) % every
	for i, f := range render.Formats {
		if i%every != first {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			test(t, f.Name)
		})
	}
}

// decode reads a published file. Its suffix decides the format.
func decode(name string, data []byte) (*discoveryv3.DiscoveryResponse, error) {
	var r discoveryv3.DiscoveryResponse
	var err error
	switch filepath.Ext(name) {
	case ".json":
		err = protojson.Unmarshal(data, &r)
	case ".yaml":
		if data, err = yaml.YAMLToJSONStrict(data); err == nil {
			err = protojson.Unmarshal(data, &r)
		}
	case ".pb":
		err = proto.Unmarshal(data, &r)
	case ".pb_text":
		err = prototext.Unmarshal(data, &r)
	default:
		err = fmt.Errorf("%s: no suffix of a format", name)
	}
	return &r, err
}

// versionOf returns the version_info in a published file.
func versionOf(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := decode(file, data)
	if err != nil || r.GetVersionInfo() == "" {
		t.Fatalf("%s has version_info %q, %v", file, r.GetVersionInfo(), err)
	}
	return r.GetVersionInfo()
}

// TestValues: values of every kind, also values that a parser could mistake, reach Envoy unchanged in each format.
func TestValues(t *testing.T) {
	t.Parallel()
	cluster := document("envoy.config.cluster.v3.Cluster", `
  name: "yes", type: STATIC, alt_stat_name: "0x1F", connect_timeout: 0.001s, load_assignment: {cluster_name: "yes"},
  circuit_breakers: {thresholds: [{max_requests: 4294967295, retry_budget: {budget_percent: {value: 1.0e-21}, min_retry_concurrency: 0}}]},
  ring_hash_lb_config: {minimum_ring_size: "8388607", maximum_ring_size: 8388608},
  health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {send: {binary: AP+A}}}],
  metadata: {filter_metadata: {"on": {
    words: ["", " ", "  a", "a  ", "~", "null", "yes", "No", "on", "TRUE", "0x1F", "010", "1e3", "1.5", "-1", "99999999999999999999", ".inf", "<<", "=", "2020-01-01"],
    syntax: ["a: b #c", "- d", "%%YAML", "---", "...", "&a *b", "!c", "?", "[", "{}", "|", ">", "'", "\"", "\\", "\\u0041", "a\nb\n", "a\r\nb", "\ta"],
    characters: ["\0", "\a\b\v\f\e\x1f\x7f", "a\Nb", "a\Lb", "a\Pb", "\uFEFFa", "\uFFFE", "\x80\x9f", "\_", "é", "😀", "\U0010FFFF"],
    keys: {"": a, " ": b, "yes": c, "n": d, "1": e, "1.5": f, "null": g, "~": h, "<<": i, "a.b:c/d": j, "a: b": k, "#": l, "\0": m, "\N": n, "-": o, plain_1: p, ? %[1]q : {long: [q]}, ? %[2]q : [long, {r: s}]},
    numbers: [0, 1, -1, 2147483647, -2147483648],
    kinds: [null, true, false, {}, [], [[], [[1, [2]], {a: {b: [c], d: {}}}]]]}}}`, strings.Repeat("k", 1024), strings.Repeat("l", 5000))
	var want map[string]any
	for _, f := range render.Formats {
		s := startFixture(t, map[string]string{"all.yaml": cluster}, "--format", f.Name)
		content(t, s.envoy)
		dump := s.envoy.ConfigDump(t, "dynamic_active_clusters")
		if len(dump) != 1 {
			t.Fatalf("%s: %d clusters", f.Name, len(dump))
		}
		got := dump[0]["cluster"].(map[string]any)
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("what Envoy has (-%s +%s):\n%s", render.Formats[0].Name, f.Name, diff)
		}
	}
}

// TestEnvoyReadsNumbersOfYAML: in a Struct, Envoy reads some numbers in YAML as texts: those that xdspub refuses to
// publish as YAML, and no others.
func TestEnvoyReadsNumbersOfYAML(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]any{
		"0": 0.0, "-1": -1.0, "2147483647": 2147483647.0, "-2147483648": -2147483648.0,
		"2147483648": "2147483648", "-2147483649": "-2147483649", "1.5": "1.5", "1e21": "1e21", "0.1": "0.1",
	} {
		b := startBare(t, document("envoy.config.cluster.v3.Cluster", `name: c, type: STATIC, connect_timeout: 1s, metadata: {filter_metadata: {m: {n: %s}}}`, number), "")
		cluster := b.envoy.ConfigDump(t, "dynamic_active_clusters")[0]["cluster"].(map[string]any)
		got := cluster["metadata"].(map[string]any)["filter_metadata"].(map[string]any)["m"].(map[string]any)["n"]
		if got != want {
			t.Errorf("of %s in YAML Envoy makes %#v, want %#v", number, got, want)
		}
	}
}

// TestEnvoyTakesHalfOfBinary: Envoy applies the readable part of a truncated binary file, and counts a success. It
// refuses truncated JSON.
func TestEnvoyTakesHalfOfBinary(t *testing.T) {
	t.Parallel()
	for format, success := range map[string]bool{"pb": true, "json": false} {
		s := newFixture(t, map[string]string{"all.yaml": documents(staticCluster("blue", 1), staticCluster("green", 1))}, "--format", format)
		s.startWatch(t)
		s.startEnvoy(t)
		s.took(t)
		name := filepath.Join(s.out, "cds/cds."+format)
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		first, rest, _ := strings.Cut(string(whole), "blue")
		before, _, _ := strings.Cut(rest, ".googleapis.com/") // in the type of the second cluster
		envoytest.Publish(t, name, first+"blue"+before)
		envoytest.Eventually(t, patience, "Envoy has looked", func() (bool, string) {
			n := s.envoy.Stat(t, "cluster_manager.cds.update_attempt")
			return n == 2, fmt.Sprint(n, " attempts")
		})
		green := strings.Contains(s.envoy.Admin(t, "/clusters"), "green::")
		if succeeded := s.envoy.Stat(t, "cluster_manager.cds.update_success") == 2; succeeded != success || green == success {
			t.Errorf("%s: counts a success: %t, has the cluster behind the cut: %t", format, succeeded, green)
		}
	}
}
