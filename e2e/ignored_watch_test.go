package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"xdspub/tools/envoytest"
)

// TestIgnoredWatch renames new files into the watched_directory of several fields. Envoy reads the body of a direct
// response again. It does not read Lua code and the body of a local reply again, as rule ignored-watch says.
func TestIgnoredWatch(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) map[string]any {
		return map[string]any{"filename": filepath.Join(dir, name), "watched_directory": map[string]any{"path": dir}}
	}
	put := func(generation int) {
		envoytest.Publish(t, filepath.Join(dir, "lua"), fmt.Sprintf(`function envoy_on_request(h) if h:headers():get(":path") == "/lua" then h:respond({[":status"]="200"}, "lua %d") end end`, generation))
		envoytest.Publish(t, filepath.Join(dir, "reply"), fmt.Sprintf("reply %d", generation))
		envoytest.Publish(t, filepath.Join(dir, "body"), fmt.Sprintf("body %d", generation)) // the last file: when Envoy has read it, Envoy has handled the others
	}
	put(1)
	port := envoytest.FreePort(t)
	const filters = "type.googleapis.com/envoy.extensions.filters."
	manager := map[string]any{
		"@type": filters + "network.http_connection_manager.v3.HttpConnectionManager", "stat_prefix": "h",
		"http_filters": []any{
			map[string]any{"name": "lua", "typed_config": map[string]any{"@type": filters + "http.lua.v3.Lua", "default_source_code": file("lua")}},
			map[string]any{"name": "router", "typed_config": map[string]any{"@type": filters + "http.router.v3.Router"}},
		},
		"route_config": map[string]any{"name": "r", "virtual_hosts": []any{map[string]any{"name": "v", "domains": []any{"*"}, "routes": []any{
			map[string]any{"match": map[string]any{"path": "/reply"}, "direct_response": map[string]any{"status": 418}},
			map[string]any{"match": map[string]any{"prefix": "/"}, "direct_response": map[string]any{"status": 200, "body": file("body")}},
		}}}},
		"local_reply_config": map[string]any{"mappers": []any{map[string]any{
			"filter": map[string]any{"status_code_filter": map[string]any{"comparison": map[string]any{"op": "EQ", "value": map[string]any{"default_value": 418, "runtime_key": "none"}}}},
			"body":   file("reply"),
		}}},
	}
	bootstrap, err := json.Marshal(map[string]any{"admin": map[string]any{"address": map[string]any{"socket_address": map[string]any{"address": "127.0.0.1", "port_value": 0}}}, "static_resources": map[string]any{"listeners": []any{map[string]any{
		"name": "l", "address": map[string]any{"socket_address": map[string]any{"address": "127.0.0.1", "port_value": port}},
		"filter_chains": []any{map[string]any{"filters": []any{map[string]any{"name": "h", "typed_config": manager}}}},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	envoytest.Start(t, envoytest.Options{Bootstrap: bootstrap})
	get := func(path string) string {
		_, body, err := envoytest.Get(t, fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	put(2)
	envoytest.Eventually(t, patience, "the new body", func() (bool, string) {
		body := get("/body")
		return body == "body 2", body
	})
	for _, name := range []string{"lua", "reply"} {
		if body := get("/" + name); body != name+" 1" {
			t.Errorf("/%s answers %q", name, body)
		}
	}
}
