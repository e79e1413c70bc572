package agreement

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/check"
	"xdspub/source/decode"
	"xdspub/tools/envoytest"
)

// TestDialects compares validate with `envoy --mode validate` for bootstraps in unusual forms: validate finds no
// error in a bootstrap that Envoy accepts, and an error in each other.
func TestDialects(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Envoy")
	}
	anyOf := func(rest string) string {
		return `{static_resources: {clusters: [{name: c, connect_timeout: 1s, metadata: {typed_filter_metadata: {a: {"@type": type.googleapis.com/google.protobuf.` + rest + "}}}}]}}\n"
	}
	for name, c := range map[string]struct {
		file, content string
		refused       bool
	}{
		"empty text":                 {"a.pb_text", "", false},
		"comment as text":            {"a.pb_text", "# nothing\n", false},
		"empty binary":               {"a.pb", "", false},
		"empty object":               {"a.json", "{}\n", false},
		"empty mapping":              {"a.yaml", "{}\n", false},
		"one rare field":             {"a.pb_text", "header_prefix: \"x\"\n", false},
		"rare fields":                {"a.yaml", "stats_config: {}\nenable_dispatcher_stats: true\n", false},
		"flow style":                 {"a.yaml", "{node: {id: a, cluster: b}}\n", false},
		"a binary node":              {"a.pb", "\n\x08\n\x01a\x12\x03abc", false},
		"a binary unknown field":     {"a.pb", "\n\x03\n\x01a\xf8\x7f\x01", true},
		"reserved name":              {"a.pb_text", "runtime { symlink_root: \"/\" }\nadmin {}\n", false},
		"reserved name inside":       {"a.pb_text", "static_resources { clusters { name: \"c\" connect_timeout { seconds: 1 } hosts { pipe { path: \"x\" } } tls_context {} } }\n", false},
		"reserved name in YAML":      {"a.yaml", "admin: {}\nruntime: {}\n", true},
		"reserved number":            {"a.pb_text", "admin {}\n11: 1\n", true},
		"hex escape":                 {"a.pb_text", "node { id: \"a\\xff\" cluster: \"c\" }\n", false},
		"octal escape":               {"a.pb_text", "node { id: \"\\337h\" cluster: \"\\400\" }\n", false},
		"half a surrogate pair":      {"a.pb_text", "node { id: \"\\ud800\" }\n", false},
		"no escape":                  {"a.pb_text", "node { id: \"\\q\" }\n", true},
		"ignored key":                {"a.yaml", "!ignore anchors:\n- &a {id: x}\nnode: *a\n", false},
		"ignored key inside":         {"a.yaml", "node:\n  !ignore x: 1\n  id: a\n", false},
		"ignored field":              {"a.yaml", "!ignore node: {foo: 1}\nadmin: {}\n", false},
		"key with another tag":       {"a.yaml", "!foo x: 1\nadmin: {}\n", true},
		"tab before a comment":       {"a.yaml", "admin: {}\nnode:\n\t# x\n  id: a\n", false},
		"tab on an empty line":       {"a.yaml", "node:\n\t\n  id: a\n", false},
		"tab behind a scalar":        {"a.yaml", "node:\n  id: a\n\t# x\n  cluster: b\n", true},
		"tab as indentation":         {"a.yaml", "node:\n\tid: a\n", true},
		"two documents":              {"a.yaml", "node: {id: a, cluster: b}\n---\nnode: {id: m}\n", false},
		"merge key":                  {"a.yaml", "node: &n {id: a}\nadmin: {<<: {}}\n", true},
		"key stands twice":           {"a.yaml", "admin: {}\nadmin: {profile_path: a}\n", false},
		"Any without value":          {"a.yaml", anyOf("StringValue"), false},
		"Any of a Struct, no value":  {"a.yaml", anyOf("Struct"), false},
		"Any with null":              {"a.yaml", anyOf("Int32Value, value: null"), false},
		"Any of a list, object":      {"a.yaml", anyOf("ListValue, value: {}"), false},
		"Any of a mask":              {"a.yaml", anyOf("FieldMask"), false},
		"Any of a number, message":   {"a.yaml", anyOf("Int32Value, value: {value: 1}"), false},
		"Any of a time, message":     {"a.yaml", anyOf("Timestamp, value: {}"), false},
		"Any of Empty with value":    {"a.yaml", anyOf("Empty, value: {}"), true},
		"Any with another field":     {"a.yaml", anyOf("Struct, foo: 1"), true},
		"unknown field":              {"a.yaml", "admin: {addres: {}}\n", true},
		"unknown enum value":         {"a.yaml", "static_resources: {clusters: [{name: c, connect_timeout: 1s, type: STATICC}]}\n", true},
		"both of a oneof":            {"a.yaml", "admin: {address: {pipe: {path: x}, socket_address: {address: 1.1.1.1, port_value: 0}}}\n", true},
		"too many nanos":             {"a.pb_text", "static_resources { clusters { name: \"c\" connect_timeout { seconds: 1 } outlier_detection { max_ejection_time_jitter { nanos: 1929379840 } } } }\n", true},
		"two services of ads_config": {"a.yaml", "node: {id: a, cluster: b}\ndynamic_resources: {ads_config: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: c}}, {envoy_grpc: {cluster_name: c}}]}}\nstatic_resources: {clusters: [{name: c, connect_timeout: 1s}]}\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, c.file)
			if err := os.WriteFile(path, []byte(c.content), 0o644); err != nil {
				t.Fatal(err)
			}
			command := exec.Command(envoytest.Binary(t), "--mode", "validate", "-c", path)
			if output, err := command.CombinedOutput(); (err != nil) != c.refused {
				t.Errorf("Envoy: %v\n%s", err, output)
			}
			if !decode.HoldsBootstrap(path) {
				t.Error("not recognised as a bootstrap")
			}
			checked, err := check.Bootstrap(context.Background(), check.BootstrapOptions{Path: path, Root: dir})
			if err != nil {
				t.Fatal(err)
			}
			if checked.Diagnostics.HasErrors() != c.refused {
				t.Errorf("refused: %v here, want %v: %v", !c.refused, c.refused, checked.Diagnostics)
			}
			for _, d := range checked.Diagnostics {
				if strings.Contains(d.Message+d.Help, "would drop") || strings.Contains(d.Message+d.Help, "would take") {
					t.Errorf("says of a bootstrap what Envoy does with other files: %s; %s", d, d.Help)
				}
			}
		})
	}
}
