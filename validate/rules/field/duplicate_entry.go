package field

import (
	"fmt"
	"slices"
	"strings"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
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
	Doc: `A list has a duplicate entry.

Envoy rejects a listener with two routes of redis_proxy that have one prefix ("prefix ` + "`" + ` already
exists"; with case_insensitive, a and A are the same), two equal keys of api_key_auth
("Duplicated credential key"), two zookeeper_proxy thresholds for one opcode, two local rate
limits for one descriptor ("duplicate descriptor in the local rate descriptor"; the order of
its entries makes a difference), or a Wasm environment variable that is set twice.`,
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
			unique(p, n.Path().Field("descriptors"), "duplicate descriptor", keysOf(m.GetDescriptors(), func(d *ratelimitv3.LocalRateLimitDescriptor) string {
				var key strings.Builder
				for _, e := range d.GetEntries() {
					fmt.Fprintf(&key, "%q=%q ", e.GetKey(), e.GetValue())
				}
				return key.String()
			}))
		case *redisv3.RedisProxy_PrefixRoutes:
			unique(p, n.Path().Field("routes"), "two routes have the same prefix", keysOf(m.GetRoutes(), func(r *redisv3.RedisProxy_PrefixRoutes_Route) string {
				if m.GetCaseInsensitive() {
					return facts.LowerASCII(r.GetPrefix())
				}
				return r.GetPrefix()
			}))
		case *zookeeperv3.ZooKeeperProxy:
			unique(p, n.Path().Field("latency_threshold_overrides"), "two thresholds have the same opcode",
				keysOf(m.GetLatencyThresholdOverrides(), func(o *zookeeperv3.LatencyThresholdOverride) string {
					return o.GetOpcode().String()
				}))
		case *wasmv3.EnvironmentVariables:
			environment(p, n, m)
		}
	},
}

func credentials(p *validate.Pass, n *xds.Node, list []*apikeyv3.Credential) {
	unique(p, n.Path().Field("credentials"), "two credentials have the same key", keysOf(list, (*apikeyv3.Credential).GetKey))
}

// keysOf returns the keys of the elements of a list.
func keysOf[E any](list []E, key func(E) string) []string {
	keys := make([]string, len(list))
	for i, e := range list {
		keys[i] = key(e)
	}
	return keys
}

// unique reports the elements of a list that have the key of an earlier element. path is the path of the list, keys
// are the keys of its elements.
func unique(p *validate.Pass, path xds.Path, message string, keys []string) {
	first := make(map[string]int, len(keys))
	for i, key := range keys {
		at, twice := first[key]
		if !twice {
			first[key] = i
			continue
		}
		p.Report(validate.Finding{
			Path:    path.Index(i),
			Message: message,
			Help:    "remove or change one of them",
			Related: facts.Related(p.Resource, path.Index(at), "the first one is here"),
		})
	}
}

func environment(p *validate.Pass, n *xds.Node, m *wasmv3.EnvironmentVariables) {
	for i, key := range m.GetHostEnvKeys() {
		_, twice := m.GetKeyValues()[key]
		var other []diag.Related
		if at := slices.Index(m.GetHostEnvKeys(), key); at < i {
			twice = true
			other = facts.Related(p.Resource, n.Path().Field("host_env_keys").Index(at), "the first one is here")
		}
		if twice {
			p.Report(validate.Finding{
				Path:    n.Path().Field("host_env_keys").Index(i),
				Message: fmt.Sprintf("environment variable %q is set twice", key),
				Help:    "set it once, in host_env_keys or in key_values",
				Related: other,
			})
		}
	}
}
