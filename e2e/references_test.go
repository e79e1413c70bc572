package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/source/load"
	"xdspub/tools/envoytest"
	"xdspub/tools/portion"
	"xdspub/validate"
	"xdspub/validate/rules"
	"xdspub/xds"
)

// references is testdata/references.yaml.
type references struct {
	Slots map[string]map[string]any
	Rows  []map[string]any
}

// referenceRules are the codes of findings about references.
var referenceRules = []string{"config-source", "missing-path", "scoped-routes", "unresolved-reference", "unsupported-config-source", "vhds-config-source"}

// carried are fields of messages that neither resources of a source tree nor bootstraps of usual Envoys have.
var carried = []string{
	"envoy.config.cluster.v3.ClusterCollection.entries",
	"envoy.config.endpoint.v3.LbEndpointCollection.entries",
	"envoy.config.listener.v3.ListenerCollection.entries",
	"xds.core.v3.CollectionEntry.locator",
	"xds.core.v3.Resource.name",
	"xds.core.v3.ResourceLocator.Directive.alt",
	"xds.core.v3.ResourceLocator.resource_type",
	"xds.core.v3.ResourceName.resource_type",
}

// TestReferences tries every reference with a missing target on the rules, and a sample of them on the real Envoy.
func TestReferences(t *testing.T) {
	text, err := os.ReadFile("testdata/references.yaml")
	if err != nil {
		t.Fatal(err)
	}
	missing := t.TempDir() + "/missing.json"
	tls := newPair(t, "a.example")
	certificate, err := json.Marshal([]any{map[string]any{
		"certificate_chain": map[string]any{"inline_string": tls.certificate}, "private_key": map[string]any{"inline_string": tls.key},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var table references
	full := strings.NewReplacer(`"@type": `, `"@type": type.googleapis.com/`, "CERTIFICATE", string(certificate)).Replace(string(text))
	if err := yaml.UnmarshalStrict([]byte(full), &struct {
		Parts any
		*references
	}{references: &table}); err != nil {
		t.Fatal(err)
	}
	tried, every := make(map[string]bool), portion.Every(6, 6)
	for i, row := range table.Rows {
		for _, field := range row["of"].([]any) {
			tried[field.(string)] = true
		}
		t.Run(fmt.Sprintf("%03d/%v", i, row["of"].([]any)[0]), func(t *testing.T) {
			t.Parallel()
			resources := table.resources(t, row)
			bootstrap := bootstrapOf(t, row, resources)
			published := published(bootstrapOf(t, overNetwork(row), resources), missing)
			if i%every == 0 {
				asEnvoySees(t, row, published)
			}
			asRulesSee(t, row, resources, bootstrap, published)
		})
	}
	for _, ref := range xds.References {
		if field := string(ref.Field); !tried[field] && !slices.Contains(carried, field) {
			t.Errorf("%s stands in the catalogue, and no row tries it", field)
		}
	}
	holders, err := os.ReadFile("../xds/testdata/holders.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(holders)) {
		if field, _, _ := strings.Cut(line, " -> "); !tried[field] && !slices.Contains(carried, field) {
			t.Errorf("%s carries references, and no row tries it", field)
		}
	}
}

// resources returns the resources of a row, and a cluster and a secret as existing targets.
func (r references) resources(t *testing.T, row map[string]any) []any {
	resources := []any{
		map[string]any{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "web", "connect_timeout": "1s"},
		map[string]any{"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret", "name": "generic", "generic_secret": map[string]any{"secret": map[string]any{"inline_string": "x"}}},
	}
	for slot := range row {
		if r.Slots[slot] == nil {
			continue
		}
		payload := row[slot]
		for slot != "resources" {
			for outer, template := range r.Slots[slot] { // a slot has one entry
				slot, payload = outer, filled(template, payload)
			}
		}
		return append(resources, payload.([]any)...)
	}
	if row["bootstrap"] == nil {
		t.Fatalf("no slot in %v", row)
	}
	return resources
}

// filled returns the template of a slot with a payload in it.
func filled(template, payload any) any {
	switch x := template.(type) {
	case string:
		if key, ok := strings.CutPrefix(x, "PAYLOAD."); ok {
			return payload.(map[string]any)[key]
		}
		if x == "PAYLOAD" {
			return payload
		}
	case []any:
		list := make([]any, len(x))
		for i := range x {
			list[i] = filled(x[i], payload)
		}
		return list
	case map[string]any:
		fields := make(map[string]any)
		for key, value := range x {
			fields[key] = filled(value, payload)
		}
		if _, merge := fields["MERGE"]; merge {
			delete(fields, "MERGE")
			for key, value := range payload.(map[string]any) {
				fields[key] = value
			}
		}
		return fields
	}
	return template
}

// bootstrapOf puts the resources into a bootstrap.
func bootstrapOf(t *testing.T, row map[string]any, resources []any) []byte {
	t.Helper()
	static := make(map[string][]any)
	for _, r := range resources {
		fields := maps.Clone(r.(map[string]any))
		kind := fields["@type"].(string)
		delete(fields, "@type")
		list := strings.ToLower(kind[strings.LastIndexByte(kind, '.')+1:]) + "s"
		static[list] = append(static[list], fields)
	}
	bootstrap := map[string]any{"node": map[string]any{"id": "n", "cluster": "c"}, "static_resources": static}
	if own, ok := row["bootstrap"].(map[string]any); ok {
		maps.Copy(bootstrap, own)
	}
	text, err := json.Marshal(bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// overNetwork returns a row whose Envoy gets clusters and listeners from a server, so that Envoy can only refuse
// the bootstrap itself.
func overNetwork(row map[string]any) map[string]any {
	dynamic := map[string]any{"cds_config": fromServer, "lds_config": fromServer}
	own, _ := row["bootstrap"].(map[string]any)
	if its, ok := own["dynamic_resources"].(map[string]any); ok {
		maps.Copy(dynamic, its)
	}
	own = maps.Clone(own)
	if own == nil {
		own = make(map[string]any)
	}
	own["dynamic_resources"] = dynamic
	row = maps.Clone(row)
	row["bootstrap"] = own
	return row
}

// fromServer is a config source by gRPC.
var fromServer = map[string]any{"resource_api_version": "V3", "api_config_source": map[string]any{
	"api_type": "GRPC", "transport_api_version": "V3", "grpc_services": []any{map[string]any{"envoy_grpc": map[string]any{"cluster_name": "web"}}},
}}

// published returns a bootstrap in which ads: {} is the path of a file that is missing.
func published(bootstrap []byte, missing string) []byte {
	return bytes.ReplaceAll(bootstrap, []byte(`{"ads":{}}`), fmt.Appendf(nil, `{"path_config_source":{"path":%q}}`, missing))
}

func asEnvoySees(t *testing.T, row map[string]any, bootstrap []byte) {
	t.Helper()
	accepted, output := envoytest.Validate(t, bootstrap)
	switch says, _ := row["says"].(string); {
	case accepted != (row["envoy"] == "accepted"):
		t.Errorf("Envoy accepts it: %v, the table says %v:\n%s", accepted, row["envoy"], output)
	case !accepted && (says == "" || !strings.Contains(output, says)):
		t.Errorf("Envoy refuses it for another reason than %q:\n%s", says, output)
	}
}

// asRulesSee judges the resources of a row as a source tree, or, if the row has none, its bootstrap. It also judges
// the bootstrap of an Envoy whose clusters and listeners come over the network.
func asRulesSee(t *testing.T, row map[string]any, resources []any, bootstrap, published []byte) {
	t.Helper()
	var found diag.List
	if len(resources) > 2 {
		text, err := json.Marshal(resources)
		if err != nil {
			t.Fatal(err)
		}
		loaded := load.Parse(load.Input{Name: "resources.json", Format: "json", Data: text})
		if len(loaded.Diagnostics) > 0 {
			t.Fatal(loaded.Diagnostics)
		}
		found = validate.Run(t.Context(), loaded.Snapshot(), rules.All, validate.Options{})
	} else {
		found = inBootstrap(t, bootstrap)
	}
	if is := gravest(found); is != row["xdspub"] {
		t.Errorf("xdspub finds %s, the table says %s: %v", is, row["xdspub"], found)
	}
	want := row["xdspub"]
	if row["network"] != nil {
		want = row["network"]
	}
	found = inBootstrap(t, published)
	if row["envoy"] == "refused" && !found.HasErrors() {
		t.Errorf("Envoy refuses it, whatever comes over the network, and xdspub finds no error: %v", found)
	}
	if is := gravest(found); is != want {
		t.Errorf("xdspub finds %s if clusters and listeners come over the network, the table says %s: %v", is, want, found)
	}
}

// inBootstrap returns the findings of a bootstrap.
func inBootstrap(t *testing.T, bootstrap []byte) diag.List {
	t.Helper()
	name := t.TempDir() + "/bootstrap.json"
	if err := os.WriteFile(name, bootstrap, 0o644); err != nil {
		t.Fatal(err)
	}
	checked, err := check.Bootstrap(t.Context(), check.BootstrapOptions{Path: name})
	if err != nil {
		t.Fatal(err)
	}
	return checked.Diagnostics
}

// gravest returns the highest severity of the findings about references; "none" if there are none.
func gravest(found diag.List) string {
	gravest := "none"
	for _, d := range found {
		if slices.Contains(referenceRules, diag.CodeOf(d.Code)) && gravest != "error" {
			gravest = d.Severity.String()
		}
	}
	return gravest
}
