package agreement

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/testing/protocmp"
	"sigs.k8s.io/yaml"

	"xdspub/diag"
	"xdspub/source/load"
	"xdspub/tools/envoytest"
	"xdspub/tools/fixing"
	"xdspub/xds"
)

// patience bounds the wait for Envoy.
const patience = 30 * time.Second

// valueFields are fields of each kind: a message with %s in place of the value, and the type of the value, empty
// for a scalar. The test puts them into metadata: Envoy reads them, and does not judge them further.
var valueFields = [][2]string{
	{"envoy.config.cluster.v3.Cluster, name: %s", ""},
	{"envoy.config.cluster.v3.Cluster, respect_dns_ttl: %s", ""},
	{"envoy.config.cluster.v3.Cluster, lb_policy: %s", ""},
	{"envoy.config.cluster.v3.Cluster, type: %s", ""},
	{"envoy.config.cluster.v3.Cluster, connect_timeout: %s", "google.protobuf.Duration"},
	{"envoy.config.cluster.v3.Cluster, per_connection_buffer_limit_bytes: %s", "google.protobuf.UInt32Value"},
	{"envoy.config.cluster.v3.Cluster, health_checks: %s", "envoy.config.core.v3.HealthCheck"},
	{"envoy.config.cluster.v3.Cluster, metadata: {filter_metadata: %s}", ""},
	{"envoy.config.cluster.v3.Cluster, metadata: {filter_metadata: {a: %s}}", ""},
	{"envoy.config.cluster.v3.Cluster, metadata: {filter_metadata: {a: {b: %s}}}", ""},
	{"envoy.config.cluster.v3.Cluster, metadata: {typed_filter_metadata: {a: %s}}", "google.protobuf.Any"},
	{"envoy.config.cluster.v3.Cluster, lb_subset_config: %s", "envoy.config.cluster.v3.Cluster.LbSubsetConfig"},
	{"envoy.config.cluster.v3.Cluster, ring_hash_lb_config: {minimum_ring_size: %s}", "google.protobuf.UInt64Value"},
	{"envoy.config.route.v3.RouteConfiguration, validate_clusters: %s", "google.protobuf.BoolValue"},
	{"envoy.config.route.v3.RouteConfiguration, internal_only_headers: %s", ""},
	{"envoy.config.core.v3.DataSource, inline_bytes: %s", ""},
	{"envoy.config.core.v3.SocketAddress, port_value: %s", ""},
	{"envoy.type.v3.Percent, value: %s", ""},
	{"envoy.type.v3.Int64Range, start: %s", ""},
	{"envoy.config.accesslog.v3.GrpcStatusFilter, statuses: %s", ""},
	{"google.protobuf.StringValue, value: %s", "google.protobuf.StringValue"},
	{"google.protobuf.Int32Value, value: %s", "google.protobuf.Int32Value"},
	{"google.protobuf.BoolValue, value: %s", "google.protobuf.BoolValue"},
	{"google.protobuf.BytesValue, value: %s", "google.protobuf.BytesValue"},
	{"google.protobuf.Duration, value: %s", "google.protobuf.Duration"},
	{"google.protobuf.Timestamp, value: %s", "google.protobuf.Timestamp"},
	{"google.protobuf.Struct, value: %s", ""},
	{"google.protobuf.ListValue, value: %s", "google.protobuf.ListValue"},
	{"google.protobuf.FieldMask, value: %s", "google.protobuf.FieldMask"},
	{"google.protobuf.Any, value: %s", "google.protobuf.Any"},
	{"google.protobuf.Empty, value: %s", "google.protobuf.Empty"},
}

var valuesTried = []string{
	`{}`, `[]`, `null`, `""`, `~`, `{value: null}`, `{value: 1}`, `{value: "1"}`, `{value: true}`, `{value: {}}`, `{value: {value: 1}}`, `{value: []}`,
	`{valu: 1}`, `[[]]`, `[{}]`, `[[{}]]`, `[null]`, `[a]`, `[1]`, `[[a]]`, `["1", OK]`, `{a: {}}`, `{a: 1}`, `{timeout: 1s}`, `[{timeout: {seconds: 1}}]`,
	`0`, `1`, `-1`, `"1"`, `"-1"`, `01`, `0x1`, `"0x1"`, `1.0`, `"1.0"`, `1.5`, `1e2`, `"1e2"`, `+1`, `" 1"`, `4294967296`, `1_0`,
	`true`, `"true"`, `yes`, `"yes"`, `"T"`, `on`, `"on"`, `off`, `word`, `ok`, `Random`, `ROUND-ROBIN`, `round_robin`, `strict_dns`, `strict`,
	`1s`, `001s`, `1.5s`, `.5s`, `+1s`, `1ms`, `{seconds: 1}`, `{seconds: "1", nanos: 5}`, `{seconds: 1, nanos: -5}`, `{nanos: 1.0}`, `{seconds: -1}`, `{seconds: []}`,
	`aGk=`, `aGk`, `a-_=`, `"2020-01-01T00:00:00Z"`, `2020-01-01`,
}

// Values that a source tree and Envoy read differently.
var (
	// severalMeanings are errors in a source tree, because an author may mean something else than Envoy reads.
	severalMeanings = []string{`null`, `~`, `{}`, `{value: null}`, `[[]]`, `[[{}]]`, `[null]`, `[[a]]`}
	// treeAlone are values that only a source tree accepts. xdspub publishes them in a form that Envoy reads.
	treeAlone = []string{`1_0`, `.5s`, `+1s`}
	// misread are values that Envoy reads differently, without an error. For a number in a Struct, xdspub has a
	// warning. Envoy reads an enum's number with a fraction or an exponent as text, which nobody writes.
	misread = []string{`1.0`, `1.5`, `1e2`, `1_0`, `4294967296`, `{nanos: 1.0}`}
	// unprintable is a duration that Envoy accepts and can't print.
	unprintable = `{seconds: 1, nanos: -5}`
)

// valueCase is one value of one field.
type valueCase struct {
	field [2]string
	value string
	// followed and tree are the results of reading the value in a file that Envoy reads, and in a source tree.
	followed, tree *load.Result
}

func (c valueCase) String() string { return fmt.Sprintf(c.field[0], c.value) }

// document returns a response with one cluster.
func (c valueCase) document() string { return "resources:\n- " + c.cluster("c") }

func (c valueCase) cluster(name string) string {
	return fmt.Sprintf("{\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: %s, connect_timeout: 1s, metadata: {typed_filter_metadata: {x: {\"@type\": type.googleapis.com/%s}}}}\n", name, c)
}

// hasUnknown reports whether the value has a field that its message lacks. Envoy drops such a field in a file, and
// refuses it in a bootstrap.
func (c valueCase) hasUnknown(t *testing.T) bool {
	var value any
	if err := yaml.Unmarshal([]byte(c.value), &value); err != nil {
		t.Fatal(err)
	}
	members, _ := value.(map[string]any)
	if list, ok := value.([]any); ok && len(list) == 1 {
		members, _ = list[0].(map[string]any)
	}
	if c.field[1] == "" || len(members) == 0 {
		return false
	}
	mt, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(c.field[1]))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(slices.Collect(maps.Keys(members)), func(name string) bool { return mt.Descriptor().Fields().ByTextName(name) == nil })
}

// isStrict reports whether findings may be stricter than an Envoy that reads a file: an unknown name is an error.
func (c valueCase) isStrict(t *testing.T, found diag.List) bool {
	return c.hasUnknown(t) || c.field[1] == "google.protobuf.FieldMask" || // protojson wants names in it
		slices.ContainsFunc(found, func(d diag.Diagnostic) bool {
			return d.Severity == diag.Error && (d.Code == "unknown-enum-value" || d.Code == "unknown-field" || d.Code == "read-otherwise")
		})
}

// TestValues tries values of every kind in fields of every kind on the real Envoy. In a file that Envoy reads,
// xdspub finds no error in a value that Envoy accepts, reads it as Envoy does, and finds an error in a value that
// Envoy refuses. A source tree accepts the values that Envoy accepts, unless a value has several meanings. Fixes
// keep the meaning of values that both accept. The test tries a third of the values, and asks Envoy about a fifth
// of the values that xdspub refuses. XDSPUB_VALUES=all tries and asks all.
func TestValues(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Envoy")
	}
	all := os.Getenv("XDSPUB_VALUES") == "all"
	v := startValues(t)
	var taken, refused []valueCase
	for i, field := range valueFields {
		for j, value := range valuesTried {
			if !all && (i+j)%3 != 0 {
				continue
			}
			c := valueCase{field: field, value: value}
			c.followed, c.tree = v.follow(t, c.document()), readTree(c.document())
			c.testTree(t)
			c.testFixes(t, "a file of Envoy's", c.followed, func(text string) *load.Result { return v.follow(t, text) })
			c.testFixes(t, "a source tree", c.tree, readTree)
			switch {
			case value == unprintable:
			case c.followed.Diagnostics.HasErrors():
				refused = append(refused, c)
			default:
				taken = append(taken, c)
			}
		}
	}
	v.testTaken(t, taken)
	for i, c := range refused {
		if (all || i%5 == 0) && v.takes(t, c.document()) && !c.isStrict(t, c.followed.Diagnostics) {
			t.Errorf("%s: Envoy takes it, and here it is refused: %v", c, c.followed.Diagnostics)
		}
	}
	t.Logf("%d values taken, %d refused", len(taken), len(refused))
}

// structCases are fields of each kind in a TypedStruct in a cluster, with values.
var structCases = []struct {
	field  string
	values []string
}{
	{tlsStruct + "sni: %s}}}", []string{`a`, `1`, `"1"`, `true`, `[a]`, `{value: a}`, `{}`}},
	{tlsStruct + "allow_renegotiation: %s}}}", []string{`true`, `"true"`, `1`, `yes`, `"yes"`, `{value: true}`}},
	{tlsStruct + "max_session_keys: %s}}}", []string{`1`, `"1"`, `1.0`, `"1.0"`, `1.5`, `-1`, `{value: 1}`, `{value: "1"}`, `{}`, `[1]`}},
	{tlsStruct + "common_tls_context: {alpn_protocols: %s}}}}", []string{`[a]`, `a`, `1`, `[1]`, `[[a]]`, `{a: 1}`, `null`}},
	{tlsStruct + "common_tls_context: {tls_params: {tls_maximum_protocol_version: %s}}}}}", []string{`TLSv1_3`, `tlsv1_3`, `4`, `"4"`, `[TLSv1_3]`, `true`}},
	{httpStruct + "common_http_protocol_options: {idle_timeout: %s}}}}", []string{`1s`, `1.5s`, `1`, `"1"`, `{seconds: 1}`, `{seconds: "1", nanos: 5}`}},
	{httpStruct + "common_http_protocol_options: {headers_with_underscores_action: %s}}}}", []string{`REJECT_REQUEST`, `reject_request`, `1`, `"1"`}},
}

const (
	tlsStruct  = `transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/xds.type.v3.TypedStruct, type_url: type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, value: {`
	httpStruct = `typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/udpa.type.v1.TypedStruct, ` +
		`type_url: type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, value: {explicit_http_config: {http_protocol_options: {}}, `
)

// TestStructs tries values in a TypedStruct on the real Envoy. A source tree accepts the values that Envoy accepts,
// unless a value has several meanings, and refuses the values that Envoy refuses. xdspub publishes a form that
// Envoy accepts.
func TestStructs(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Envoy")
	}
	v := startValues(t)
	respelled := 0
	for _, field := range structCases {
		for _, value := range field.values {
			c := fmt.Sprintf(field.field, value)
			written := fmt.Sprintf("resources:\n- {\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c, connect_timeout: 1s, %s}\n", c)
			tree := readTree(written)
			misfit := tree.Diagnostics.HasErrors()
			for _, r := range tree.Resources() {
				xds.Walk(r.Message(), func(n *xds.Node) { misfit = misfit || n.Err != nil })
			}
			switch takes := v.takes(t, written); {
			case misfit && takes && !slices.Contains(severalMeanings, value):
				t.Errorf("Envoy takes it, and here it is refused: %s %v", c, tree.Diagnostics)
			case !misfit && !takes:
				t.Errorf("Envoy refuses it, and here it is taken: %s", c)
			case !misfit && len(tree.Diagnostics) > 0:
				respelled++
				published, err := protojson.Marshal(tree.Resources()[0].Message())
				if err != nil {
					t.Fatal(err)
				}
				text := fmt.Sprintf(`{"resources":[{"@type":"type.googleapis.com/envoy.config.cluster.v3.Cluster",%s]}`, published[1:])
				if !v.takes(t, text) {
					t.Errorf("Envoy refuses what is published: %s", text)
				}
			}
		}
	}
	if respelled == 0 {
		t.Error("no value was respelled")
	}
}

// testTree compares the value in a source tree with the value in a file that Envoy reads.
func (c valueCase) testTree(t *testing.T) {
	followed, tree := c.followed.Diagnostics.HasErrors(), c.tree.Diagnostics.HasErrors()
	switch {
	case followed && !tree && !slices.Contains(treeAlone, c.value):
		t.Errorf("%s: a source tree takes what Envoy refuses: %v", c, c.followed.Diagnostics)
	case !followed && tree && !slices.Contains(severalMeanings, c.value):
		t.Errorf("%s: Envoy takes it, and a source tree refuses it: %v", c, c.tree.Diagnostics)
	case !followed && !tree:
		if diff := cmp.Diff(c.followed.Resources()[0].Message(), c.tree.Resources()[0].Message(), protocmp.Transform()); diff != "" {
			t.Errorf("%s: a source tree reads something else (-Envoy +tree):\n%s", c, diff)
		}
	}
}

// testFixes applies each fix of a warning: the finding must be gone, and the value must stay the same.
func (c valueCase) testFixes(t *testing.T, where string, result *load.Result, read func(text string) *load.Result) {
	if result.Diagnostics.HasErrors() {
		return
	}
	for _, d := range result.Diagnostics {
		for _, fix := range d.Fixes {
			if fix.Safe == slices.Contains(severalMeanings, c.value) {
				t.Errorf("%s, in %s: %q is safe: %v, and the value has several meanings: %[4]v", c, where, fix.Title, fix.Safe)
			}
			text := fixing.Applied(t, c.document(), fix)
			after := read(text)
			if len(after.Diagnostics) >= len(result.Diagnostics) {
				t.Errorf("%s, in %s: after %q: %v\n%s", c, where, fix.Title, after.Diagnostics, text)
			} else if diff := cmp.Diff(result.Resources()[0].Message(), after.Resources()[0].Message(), protocmp.Transform()); diff != "" {
				t.Errorf("%s, in %s: %q changes the meaning (-before +after):\n%s", c, where, fix.Title, diff)
			}
			if word := strings.Trim(fix.Edits[0].Text, ` "[]`); !strings.HasPrefix(fix.Title, "make a list") && !strings.Contains(d.Help, word) {
				t.Errorf("%s: the fix writes %q, and the help is: %s", c, word, d.Help)
			}
		}
	}
}

// values is an Envoy that reads clusters from a file.
type values struct {
	file, folder string
	envoy        *envoytest.Envoy
	reads        int64
	failures     int64
}

func startValues(t *testing.T) *values {
	t.Helper()
	v := &values{folder: t.TempDir(), reads: 1}
	v.file = filepath.Join(v.folder, "cds.yaml")
	envoytest.Publish(t, v.file, "resources: []\n")
	v.envoy = envoytest.Start(t, envoytest.Options{Bootstrap: fmt.Appendf(nil, "node: {id: a, cluster: b}\nadmin: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}\ndynamic_resources: {cds_config: {path_config_source: {path: %s}}}\n", envoytest.FreePort(t), v.file)})
	return v
}

// takes reports whether Envoy accepts a file.
func (v *values) takes(t *testing.T, text string) bool {
	t.Helper()
	envoytest.Publish(t, v.file, text)
	v.reads++
	envoytest.Eventually(t, patience, "Envoy reads the file", func() (bool, string) {
		n := v.envoy.Stat(t, "cluster_manager.cds.update_attempt")
		return n == v.reads, fmt.Sprint(n, " reads")
	})
	before := v.failures
	v.failures = v.envoy.Stat(t, "cluster_manager.cds.update_failure") + v.envoy.Stat(t, "cluster_manager.cds.update_rejected")
	return v.failures == before
}

// testTaken has Envoy read all values that xdspub accepts, in one file, and compares the results.
func (v *values) testTaken(t *testing.T, cases []valueCase) {
	t.Helper()
	var text strings.Builder
	text.WriteString("resources:\n")
	for i, c := range cases {
		fmt.Fprintf(&text, "- %s", c.cluster(fmt.Sprintf("c%d", i)))
	}
	if !v.takes(t, text.String()) {
		for _, c := range cases {
			if !v.takes(t, c.document()) {
				t.Errorf("%s: Envoy refuses it, and here it is taken: %v", c, c.followed.Diagnostics)
			}
		}
		return
	}
	has := make(map[string]proto.Message)
	for _, entry := range v.envoy.ConfigDump(t, "dynamic_active_clusters") {
		message := new(clusterv3.Cluster)
		cluster := entry["cluster"].(map[string]any)
		delete(cluster, "@type")
		raw, err := json.Marshal(cluster)
		if err != nil {
			t.Fatal(err)
		}
		if err := protojson.Unmarshal(raw, message); err != nil {
			t.Fatalf("%v\n%s", err, raw)
		}
		has[message.GetName()] = message
		message.Name = "c"
	}
	for i, c := range cases {
		diff := cmp.Diff(has[fmt.Sprintf("c%d", i)], c.followed.Resources()[0].Message(), protocmp.Transform())
		if diff != "" && !slices.Contains(misread, c.value) {
			t.Errorf("%s: Envoy reads something else (-Envoy +here):\n%s", c, diff)
		}
	}
}

// follow reads a text as a file that Envoy subscribes to for clusters.
func (v *values) follow(t *testing.T, text string) *load.Result {
	t.Helper()
	name := filepath.Join(v.folder, "followed.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	result, err := load.Subscribed(name, xds.Cluster, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// readTree reads a text as a file of a source tree.
func readTree(text string) *load.Result {
	return load.AsWritten(load.Input{Name: "a.yaml", Format: "yaml", Data: []byte(text)})
}
