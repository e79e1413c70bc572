package envoyapi_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"sigs.k8s.io/yaml"

	"xdspub/envoy/envoyapi"
	"xdspub/tools/envoytest"
)

// terminalFields has the fields that filters need before Envoy checks their place in the chain.
var terminalFields = map[protoreflect.FullName]string{
	"envoy.extensions.filters.network.direct_response.v3.Config":                         "",
	"envoy.extensions.filters.network.echo.v3.Echo":                                      "",
	"envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy":                             ", stat_prefix: a, cluster: c",
	"envoy.extensions.filters.network.redis_proxy.v3.RedisProxy":                         ", stat_prefix: a, settings: {op_timeout: 1s}",
	"envoy.extensions.filters.network.thrift_proxy.v3.ThriftProxy":                       ", stat_prefix: a, route_config: {}",
	"envoy.extensions.filters.network.dubbo_proxy.v3.DubboProxy":                         ", stat_prefix: a",
	"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager":  ", stat_prefix: a, route_config: {}, http_filters: [" + routerFilter + "]",
	"envoy.extensions.filters.network.generic_proxy.v3.GenericProxy":                     `, stat_prefix: a, route_config: {name: r}, codec_config: {name: h, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.generic_proxy.codecs.http1.v3.Http1CodecConfig}}, filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.generic_proxy.router.v3.Router}}]`,
	"envoy.extensions.filters.network.reverse_tunnel.v3.DrainAwareHttpConnectionManager": ", hcm_config: {stat_prefix: a, route_config: {}, http_filters: [" + routerFilter + "]}",
	"envoy.extensions.filters.http.router.v3.Router":                                     "",
	"envoy.extensions.filters.http.mcp_router.v3.McpRouter":                              ", servers: [{name: a, mcp_cluster: {cluster: c}}]",
}

const routerFilter = `{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}`

// filterPlace is a filter at the end of a chain, or before it.
type filterPlace struct {
	category string
	config   protoreflect.FullName
	last     bool
}

// listener returns a listener with the filter at its place.
func (f filterPlace) listener(t *testing.T) (l map[string]any) {
	t.Helper()
	chain := fmt.Sprintf(`{name: f, typed_config: {"@type": type.googleapis.com/%s%s}}`, f.config, terminalFields[f.config])
	text := "{filter_chains: [{filters: [CHAIN]}]}"
	end := `{name: e, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo}}`
	if f.category == "envoy.filters.http" {
		end = routerFilter
		text = `{filter_chains: [{filters: [{name: h, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: h, route_config: {}, http_filters: [CHAIN]}}]}]}`
	}
	if !f.last {
		chain += ", " + end
	}
	if err := yaml.Unmarshal([]byte(strings.Replace(text, "CHAIN", chain, 1)), &l); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestTerminalFilters puts each filter of an Envoy at the end of a chain, and before the end. Only the filters of
// terminal-filters.txt end a chain. If terminalFields lacks required fields of a filter, Envoy refuses the filter
// because of these.
func TestTerminalFilters(t *testing.T) {
	for _, v := range envoyapi.Versions {
		var places []filterPlace
		var listeners []map[string]any
		for _, category := range []string{"envoy.filters.network", "envoy.filters.http"} {
			for _, e := range envoyapi.Latest.Extensions(category) {
				if _, _, lacks := v.LacksExtension(category, e.Config); lacks || e.Config == "" || !v.Holds(e.Config) {
					continue
				}
				for _, last := range []bool{true, false} {
					places = append(places, filterPlace{category, e.Config, last})
					listeners = append(listeners, places[len(places)-1].listener(t))
				}
			}
		}
		refused := envoytest.Listeners(t, envoytest.Version(t, v.Name), listeners)
		unseen := maps.Clone(terminalFields)
		asked := 0
		for i, place := range places {
			terminal := v.IsTerminal(place.category, place.config)
			said, no := refused[i]
			misplaced := strings.Contains(said, "terminal filter")
			if misplaced && terminal == place.last || !no && terminal != place.last {
				t.Errorf("Envoy %s, %s, last %v: terminal-filters.txt says %v, and Envoy %q", v.Name, place.config, place.last, terminal, said)
			}
			if misplaced || !no {
				asked++
			}
			if misplaced && terminal {
				delete(unseen, place.config)
			}
		}
		for config := range unseen {
			if v.Holds(config) {
				t.Errorf("Envoy %s was not seen to refuse %s before the last", v.Name, config)
			}
		}
		if asked < 70 {
			t.Errorf("Envoy %s answered %d times only", v.Name, asked)
		}
	}
}
