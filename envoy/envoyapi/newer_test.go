package envoyapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"xdspub/envoy/envoyapi"
	"xdspub/tools/envoytest"
)

// TestNewer tries testdata/newer.yaml: the release of each row accepts the row, and the release before refuses it.
// xdspub validate agrees by --envoy-version.
func TestNewer(t *testing.T) {
	text, err := os.ReadFile("testdata/newer.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var table map[string][]map[string]map[string]any
	if err := yaml.UnmarshalStrict(text, &table); err != nil {
		t.Fatal(err)
	}
	for i, release := range envoyapi.Releases() {
		if i == 0 {
			continue
		}
		if len(table[release]) < 10 {
			t.Errorf("%s has %d rows, want 10", release, len(table[release]))
		}
		before, has := envoyapi.Named(envoyapi.Releases()[i-1]), envoyapi.Named(release)
		for n, row := range table[release] {
			t.Run(fmt.Sprintf("%s/%d", release, n), func(t *testing.T) {
				t.Parallel()
				boot := newerBootstrap(t, row)
				for _, v := range []*envoyapi.Version{before, has} {
					takes, said := newerTrial(t, v, boot)
					findings := newerFindings(t, v, boot)
					if wanted := v == has; takes != wanted || (len(findings) == 0) != wanted {
						t.Errorf("Envoy %s takes it: %v, want %v, and validate finds %q\n%s", v.Name, takes, wanted, findings, said)
					}
				}
			})
		}
	}
}

// newerTrial asks the Envoy of a version about a bootstrap by --mode validate.
func newerTrial(t *testing.T, v *envoyapi.Version, boot []byte) (takes bool, said string) {
	t.Helper()
	code, said := envoytest.Run(t, envoytest.Options{Binary: envoytest.Version(t, v.Name), Bootstrap: boot, Args: []string{"--mode", "validate", "--log-level", "critical"}})
	return code == 0, said
}

// newerFindings returns the errors of xdspub validate.
func newerFindings(t *testing.T, v *envoyapi.Version, boot []byte) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "boot.yaml")
	if err := os.WriteFile(file, boot, 0o644); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(judge(t, file, v), func(line string) bool { return !strings.HasPrefix(line, "error ") })
}

// newerBootstrap returns a bootstrap with the fields of a row in their places.
func newerBootstrap(t *testing.T, row map[string]map[string]any) []byte {
	t.Helper()
	with := func(place string, fields map[string]any) map[string]any {
		maps.Copy(fields, row[place])
		return fields
	}
	filters := []any{}
	if row["filter"] != nil {
		filters = append(filters, map[string]any{"name": "filter", "typed_config": row["filter"]})
	}
	filters = append(filters, map[string]any{"name": "router", "typed_config": with("router", map[string]any{"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"})})
	route := with("route", map[string]any{"match": map[string]any{"prefix": "/"}})
	if len(row["route"]) == 0 {
		route["route"] = map[string]any{"cluster": "web"}
	}
	manager := with("manager", map[string]any{
		"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", "stat_prefix": "s", "http_filters": filters,
		"route_config": with("routes", map[string]any{"name": "r", "virtual_hosts": []any{map[string]any{"name": "v", "domains": []any{"*"}, "routes": []any{route}}}}),
	})
	listener := with("listener", map[string]any{
		"name": "l", "address": map[string]any{"socket_address": map[string]any{"address": "127.0.0.1", "port_value": 10000}},
		"filter_chains": []any{map[string]any{"filters": []any{map[string]any{"name": "http", "typed_config": manager}}}},
	})
	text, err := json.Marshal(with("bootstrap", map[string]any{
		"admin":            with("admin", map[string]any{"address": map[string]any{"socket_address": map[string]any{"address": "127.0.0.1", "port_value": 0}}}),
		"static_resources": map[string]any{"listeners": []any{listener}, "clusters": []any{with("cluster", map[string]any{"name": "web", "connect_timeout": "1s"})}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
