package field

import (
	"fmt"
	"slices"
	"strings"

	apikeyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/api_key_auth/v3"
	localratev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/local_ratelimit/v3"
	redisv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/redis_proxy/v3"
	zookeeperv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/zookeeper_proxy/v3"
	wasmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/wasm/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var duplicateEntry = &validate.Rule{
	Code: "duplicate-entry",
	Doc: `An entry stands twice in a list where each may stand once.

Envoy refuses the listener: two routes of redis_proxy with one prefix ("prefix ` + "`a`" + `
already exists"; with case_insensitive, a and A are one), two equal keys of api_key_auth
("Duplicated credential key"), two thresholds of zookeeper_proxy for one opcode, two local
rate limits for one descriptor ("duplicate descriptor in the local rate descriptor"; its
entries in another order are another one), an environment variable of Wasm that is
named twice.`,
	Messages: []protoreflect.FullName{
		"envoy.extensions.filters.http.api_key_auth.v3.ApiKeyAuth",
		"envoy.extensions.filters.http.api_key_auth.v3.ApiKeyAuthPerRoute",
		"envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit",
		"envoy.extensions.filters.network.redis_proxy.v3.RedisProxy.PrefixRoutes",
		"envoy.extensions.filters.network.zookeeper_proxy.v3.ZooKeeperProxy",
		"envoy.extensions.wasm.v3.EnvironmentVariables",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *apikeyv3.ApiKeyAuth:
			credentials(p, n, m.GetCredentials())
		case *apikeyv3.ApiKeyAuthPerRoute:
			credentials(p, n, m.GetCredentials())
		case *localratev3.LocalRateLimit:
			unique(p, n, "descriptors", "descriptor stands twice", m.GetDescriptors(), func(i int) string {
				var key strings.Builder
				for _, e := range m.GetDescriptors()[i].GetEntries() {
					fmt.Fprintf(&key, "%q=%q ", e.GetKey(), e.GetValue())
				}
				return key.String()
			})
		case *redisv3.RedisProxy_PrefixRoutes:
			routes := m.GetRoutes()
			unique(p, n, "routes", "two routes have the same prefix", routes, func(i int) string {
				if m.GetCaseInsensitive() {
					return facts.LowerASCII(routes[i].GetPrefix())
				}
				return routes[i].GetPrefix()
			})
		case *zookeeperv3.ZooKeeperProxy:
			overrides := m.GetLatencyThresholdOverrides()
			unique(p, n, "latency_threshold_overrides", "two thresholds for this opcode", overrides, func(i int) string {
				return overrides[i].GetOpcode().String()
			})
		case *wasmv3.EnvironmentVariables:
			environment(p, n, m)
		}
	},
}

func credentials(p *validate.Pass, n *xds.Node, list []*apikeyv3.Credential) {
	unique(p, n, "credentials", "two credentials have one key", list, func(i int) string { return list[i].GetKey() })
}

// unique reports the elements of a list whose key is that of one before.
func unique[E any](p *validate.Pass, n *xds.Node, field, message string, list []E, key func(int) string) {
	first := make(map[string]int, len(list))
	for i := range list {
		at, twice := first[key(i)]
		if !twice {
			first[key(i)] = i
			continue
		}
		path := n.Path().Field(field)
		p.Report(validate.Finding{
			Path:    path.Index(i),
			Message: message,
			Help:    "remove or change one of them",
			Related: facts.Related(p.Resource, path.Index(at), "first stands here"),
		})
	}
}

func environment(p *validate.Pass, n *xds.Node, m *wasmv3.EnvironmentVariables) {
	for i, key := range m.GetHostEnvKeys() {
		_, twice := m.GetKeyValues()[key]
		var other []diag.Related
		if at := slices.Index(m.GetHostEnvKeys(), key); at < i {
			twice = true
			other = facts.Related(p.Resource, n.Path().Field("host_env_keys").Index(at), "first stands here")
		}
		if twice {
			p.Report(validate.Finding{
				Path:    n.Path().Field("host_env_keys").Index(i),
				Message: fmt.Sprintf("environment variable %q is set twice", key),
				Help:    "name it once, in host_env_keys or in key_values",
				Related: other,
			})
		}
	}
}
