package admit

import (
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"
)

// TestNodeWith copies fields of a client's node. The other fields stay those of the first node.
func TestNodeWith(t *testing.T) {
	for _, tt := range []struct{ fields, node, client, want, text string }{
		{"id", `{id: r, cluster: c}`, `{id: a, cluster: x}`, `{id: a, cluster: c}`, "id=a"},
		{"cluster", `{id: r, cluster: c}`, `{id: a}`, `{id: r}`, "cluster="},
		{"locality.region locality.sub_zone", `{id: r, locality: {zone: z, sub_zone: s}}`, `{locality: {region: eu, zone: far}}`,
			`{id: r, locality: {region: eu, zone: z}}`, "locality.region=eu locality.sub_zone="},
		{"locality.zone", `{locality: {zone: z}}`, `{}`, `{}`, "locality.zone="},
		{"metadata.env", `{metadata: {env: qa, team: t}}`, `{metadata: {env: prod, team: u}}`, `{metadata: {env: prod, team: t}}`, "metadata.env=prod"},
		{"metadata.env", `{metadata: {env: qa}}`, `{}`, `{}`, "metadata.env="},
		{"metadata.a.b", `{metadata: {a: {b: 1, c: 2}}}`, `{metadata: {a: {b: true, d: 3}}}`, `{metadata: {a: {b: true, c: 2}}}`, "metadata.a.b=true"},
		{"metadata.a.b", `{metadata: {a: {b: 1}}}`, `{metadata: {a.b: 2}}`, `{metadata: {a.b: 2}}`, "metadata.a.b=2"},
		{"metadata.a.b.c", `{metadata: {a: 1}}`, `{metadata: {a: {b.c: x}}}`, `{metadata: {a: {b.c: x}}}`, "metadata.a.b.c=x"},
		{"metadata.a", `{metadata: {a: 1}}`, `{metadata: {a: {b: c}}}`, `{}`, "metadata.a="},
		{"user_agent_name user_agent_version", `{user_agent_name: envoy, user_agent_build_version: {version: {major_number: 1}}}`,
			`{user_agent_name: envoy, user_agent_build_version: {version: {major_number: 1, minor_number: 40}, metadata: {build.type: RELEASE}}}`,
			`{user_agent_name: envoy, user_agent_build_version: {version: {major_number: 1, minor_number: 40}}}`, "user_agent_name=envoy user_agent_version=1.40.0"},
		{"user_agent_version", `{user_agent_build_version: {version: {major_number: 1}}}`, `{user_agent_version: 1.60.1}`, `{user_agent_version: 1.60.1}`, "user_agent_version=1.60.1"},
		{"user_agent_version", `{user_agent_version: v}`, `{}`, `{}`, "user_agent_version="},
	} {
		var fields []NodeField
		for _, name := range strings.Fields(tt.fields) {
			f, err := ParseNodeField(name)
			if err != nil {
				t.Fatal(err)
			}
			fields = append(fields, f)
		}
		node, client := nodeFrom(t, tt.node), nodeFrom(t, tt.client)
		got := NodeWith(node, client, fields)
		if !proto.Equal(got, nodeFrom(t, tt.want)) || !proto.Equal(node, nodeFrom(t, tt.node)) || !proto.Equal(client, nodeFrom(t, tt.client)) {
			t.Errorf("%s of %s in %s is %v", tt.fields, tt.client, tt.node, got)
		}
		if text := Describe(client, fields); text != tt.text {
			t.Errorf("%s of %s is %q", tt.fields, tt.client, text)
		}
		if again := NodeWith(got, got, fields); !proto.Equal(again, got) {
			t.Errorf("the fields of %v in itself: %v", got, again)
		}
	}
	for _, name := range []string{"", "name", "metadata", "metadata.", "locality", "Cluster", "cluster ", "extensions"} {
		if _, err := ParseNodeField(name); err == nil {
			t.Errorf("%q is a field", name)
		}
	}
}

// TestDescribe shows nodes whose values look like other fields, break the line, hide the next value, or are missing.
func TestDescribe(t *testing.T) {
	fields := []NodeField{"cluster", "metadata.env"}
	for client, want := range map[string]string{
		`{cluster: web-1.example:80/a@b, metadata: {env: 3}}`:                `cluster=web-1.example:80/a@b metadata.env=3`,
		`{cluster: web metadata.env=prod}`:                                   `cluster="web metadata.env=prod" metadata.env=`,
		`{cluster: a=b, metadata: {env: ""}}`:                                `cluster="a=b" metadata.env=""`,
		`{cluster: '"web"): 9 clients', metadata: {env: é}}`:                 `cluster="\"web\"): 9 clients" metadata.env="é"`,
		`{cluster: "a\n\e[2J\u202e\0", metadata: {env: x}}`:                  `cluster="a\n\x1b[2J\u202e\x00" metadata.env=x`,
		`{cluster: ` + strings.Repeat("a", 60_000) + `, metadata: {env: x}}`: `cluster="` + strings.Repeat("a", 1024) + `…" metadata.env=x`,
	} {
		if got := Describe(nodeFrom(t, client), fields); got != want {
			t.Errorf("%.100s:\n%.2000s, want\n%.2000s", client, got, want)
		}
	}
}

// nodeFrom returns a node from YAML.
func nodeFrom(t *testing.T, text string) *corev3.Node {
	t.Helper()
	var n corev3.Node
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = protojson.Unmarshal(data, &n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &n
}
