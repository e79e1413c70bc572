package rules_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/diag"
	"xdspub/source/load"
	"xdspub/validate"
	"xdspub/validate/rules"
)

// TestBesideDeprecated: a deprecated field together with a field that excludes it is an error, in addition to the
// warning about the deprecated field.
func TestBesideDeprecated(t *testing.T) {
	const (
		routes = `"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
name: web
request_headers_to_add:
- header: {key: x-team, value: web}
`
		manager = `"@type": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig
name: web
typed_config:
  "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
  stat_prefix: web
  rds: {route_config_name: web, config_source: {path_config_source: {path: rds.yaml}}}
  access_log_options: {}
`
	)
	tests := []struct {
		name, resource, want string
	}{
		{"append alone", routes + "  append: false\n", ""},
		{"append and the default action", routes + "  append: false\n  append_action: APPEND_IF_EXISTS_OR_ADD\n", ""},
		{"append and another action", routes + "  append: false\n  append_action: ADD_IF_ABSENT\n", `header "x-team" has both append and append_action`},
		{"log interval", manager + "  access_log_flush_interval: 1s\n", "both access_log_flush_interval and access_log_options are set"},
		{"log on new request", manager + "  flush_access_log_on_new_request: true\n", "both flush_access_log_on_new_request and access_log_options are set"},
		{"no log on new request", manager + "  flush_access_log_on_new_request: false\n", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "resource.yaml"), []byte(test.resource), 0o600); err != nil {
				t.Fatal(err)
			}
			loaded, err := load.New(load.Options{}).Load(t.Context(), dir)
			if err != nil || len(loaded.Diagnostics) > 0 {
				t.Fatal(err, loaded.Diagnostics)
			}
			var got []string
			for _, d := range validate.Run(t.Context(), loaded.Snapshot(), rules.All, validate.Options{}) {
				if code := diag.CodeOf(d.Code); code == "header-mutation" || code == "connection-manager-options" {
					got = append(got, d.Message)
				}
			}
			if strings.Join(got, "\n") != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
