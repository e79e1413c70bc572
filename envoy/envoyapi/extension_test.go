package envoyapi_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/tools/envoytest"
)

var (
	update = flag.Bool("update", false, "write extensions.txt as Envoy says it")
	every  = flag.Bool("every", false, "try every message type at every extension point, not only those of extensions")
)

// proactive is an extension that config_dump lacks: its category has two registries, and config_dump shows only
// one. Envoy searches the other registry for this name only, which its log gives. TestExtensionPoints tries the
// extension.
const proactive = "envoy.resource_monitors.proactive envoy.resource_monitors.global_downstream_max_connections envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig"

// TestExtensions asks the binary for its extensions. extensions.txt has these and proactive.
func TestExtensions(t *testing.T) {
	said := extensionsOf(t, "")
	if len(said) < 500 {
		t.Fatalf("only %d extensions: does config_dump look different now?", len(said))
	}
	said[proactive] = true
	compareExtensions(t, said)
}

// extensionsOf asks a binary for its extensions; "" means the binary of the latest version.
func extensionsOf(t *testing.T, binary string) map[string]bool {
	t.Helper()
	e := envoytest.Start(t, envoytest.Options{Binary: binary, Bootstrap: []byte(`admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}`)})
	var dump struct {
		Configs []struct {
			Bootstrap struct {
				Node struct {
					Extensions []struct {
						Category, Name string
						Disabled       bool
						TypeURLs       []string `json:"type_urls"`
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(e.Admin(t, "/config_dump?mask=bootstrap")), &dump); err != nil {
		t.Fatal(err)
	}
	said := make(map[string]bool)
	for _, x := range dump.Configs[0].Bootstrap.Node.Extensions {
		if !x.Disabled {
			said[strings.Join(append([]string{x.Category, x.Name}, configFirst(x.Name, x.TypeURLs)...), " ")] = true
		}
	}
	return said
}

// forRoutes matches the type of a filter's configuration for a route. The binary lists the two types of a filter in
// no order.
var forRoutes = regexp.MustCompile(`PerRoute|Override$|\.CorsPolicy$`)

// configFirst returns types with the type of the configuration before the type for a route.
func configFirst(name string, types []string) []string {
	types = slices.Clone(types)
	if len(types) == 2 && forRoutes.MatchString(types[0]) {
		slices.Reverse(types)
	}
	if len(types) > 2 || len(types) == 2 && forRoutes.MatchString(types[0]) == forRoutes.MatchString(types[1]) {
		panic(fmt.Sprintf("%s: which of %v is for routes?", name, types))
	}
	return types
}

const extensionsHead = `# The extensions of the binary of Envoy 1.40.0 (without contrib), as config_dump lists them (node.extensions). A
# line is a category, a name, the type of the configuration and, for an HTTP filter with another type for routes,
# this type. config_dump does not show the category envoy.resource_monitors.proactive, whose name is our own. make
# extensions writes this file; a test asks the binary again.
`

// compareExtensions compares extensions.txt with lines. With -update, it writes the file.
func compareExtensions(t *testing.T, lines map[string]bool) {
	t.Helper()
	data, err := os.ReadFile("v1.40.0/extensions.txt")
	if err != nil {
		t.Fatal(err)
	}
	got, want := string(data), extensionsHead+strings.Join(slices.Sorted(maps.Keys(lines)), "\n")+"\n"
	if got == want {
		return
	}
	t.Errorf("extensions.txt is not what Envoy says; make extensions rewrites it (-file +Envoy):\n%s", cmp.Diff(strings.Split(got, "\n"), strings.Split(want, "\n")))
	if *update {
		if err := os.WriteFile("v1.40.0/extensions.txt", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
