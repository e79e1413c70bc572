package envoy

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCollectPaths(t *testing.T) {
	var dump any
	if err := json.Unmarshal([]byte(`{
		"admin": {"access_log": [{"typed_config": {"path": "/dev/stdout"}}], "address": {"pipe": {"path": "/run/admin.sock"}}},
		"dynamic_resources": {"cds_config": {"path_config_source": {"path": "/a/cds.json", "watched_directory": {"path": "/a"}}}, "lds_config": {"path": "/a/lds.json"},
			"lds_resources_locator": "file:///a/collection.json", "cds_resources_locator": "xdstp://x/y"},
		"layered_runtime": {"layers": [{"rtds_layer": {"rtds_config": {"path_config_source": {"path": "/a/rtds.json", "poll_interval": "2s"}}}}, {"disk_layer": {"symlink_root": "/srv"}}]},
		"static_resources": {
			"clusters": [{"eds_cluster_config": {"eds_config": {"path_config_source": {"path": "/a/eds.json"}}}}],
			"listeners": [{"filter_chains": [{"filters": [{"typed_config": {
				"rds": {"config_source": {"path_config_source": {"path": "/a/rds.json"}}},
				"scoped_routes": {"rds_config_source": {"path": "/a/r.json"}, "scoped_rds": {"scoped_rds_config_source": {"path": "/a/srds.json"}}}}}]}]}]
		}}`), &dump); err != nil {
		t.Fatal(err)
	}
	var got Bootstrap
	got.collectPaths(dump)
	slices.Sort(got.Paths)
	want := Bootstrap{
		Paths:  []string{"/a/cds.json", "/a/collection.json", "/a/eds.json", "/a/lds.json", "/a/r.json", "/a/rds.json", "/a/rtds.json", "/a/srds.json"},
		Polled: []string{"/a/rtds.json"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
