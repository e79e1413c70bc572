package envoytest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Listeners starts an Envoy with listeners in an LDS file, and returns Envoy's reasons for the refused listeners,
// by index. An empty binary means Binary. Listeners changes the name and the address of each listener, and sets
// bind_to_port to false. One run of Envoy judges thousands of listeners.
func Listeners(t testing.TB, binary string, listeners []map[string]any) (refused map[int]string) {
	t.Helper()
	dir := t.TempDir()
	index := make(map[string]int)
	for i, l := range listeners {
		name := fmt.Sprintf("listener-%d", i)
		index[name] = i
		l["@type"] = "type.googleapis.com/envoy.config.listener.v3.Listener"
		l["name"] = name
		l["bind_to_port"] = false
		l["address"] = map[string]any{"socket_address": map[string]any{
			"address": fmt.Sprintf("127.%d.%d.1", 1+i/250, 1+i%250), "port_value": 1,
		}}
	}
	lds, err := json.Marshal(map[string]any{"resources": listeners})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "lds.json")
	if err := os.WriteFile(path, lds, 0o600); err != nil {
		t.Fatal(err)
	}
	e := Start(t, Options{Binary: binary, Bootstrap: fmt.Appendf(nil, `{
		"node": {"id": "n", "cluster": "c"},
		"admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}},
		"dynamic_resources": {"lds_config": {"path_config_source": {"path": %q}}}
	}`, path)})
	refused = make(map[int]string)
	active := 0
	for _, l := range e.ConfigDump(t, "dynamic_listeners") {
		failed, ok := l["error_state"].(map[string]any)
		if !ok {
			active++
			continue
		}
		config, _ := failed["failed_configuration"].(map[string]any)
		name, _ := config["name"].(string)
		refused[index[name]] = fmt.Sprint(failed["details"])
	}
	if active+len(refused) != len(listeners) {
		t.Fatalf("of %d listeners Envoy took %d and refused %d", len(listeners), active, len(refused))
	}
	return refused
}
