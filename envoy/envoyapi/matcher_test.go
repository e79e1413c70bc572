package envoyapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"sigs.k8s.io/yaml"

	"xdspub/envoy/envoyapi"
	"xdspub/tools/envoytest"
	"xdspub/tools/portion"
)

// matcherPlaces are places of matchers in a listener, each with an input that Envoy accepts there.
var matcherPlaces = map[protoreflect.FullName]struct{ listener, input string }{
	"envoy.config.listener.v3.Listener.filter_chain_matcher":                                                        {`{filter_chains: [{name: a}], filter_chain_matcher: MATCHER}`, portInput},
	"envoy.config.route.v3.VirtualHost.matcher":                                                                     {inManager(`{}`, `{virtual_hosts: [{name: v, domains: ["*"], matcher: MATCHER}]}`, ``), headerInput},
	"envoy.extensions.common.matching.v3.ExtensionWithMatcher.xds_matcher":                                          {inFilter(`{"@type": type.googleapis.com/envoy.extensions.common.matching.v3.ExtensionWithMatcher, extension_config: {name: f, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault}}, xds_matcher: MATCHER}`), portInput},
	"envoy.extensions.filters.http.composite.v3.Composite.matcher":                                                  {inFilter(`{"@type": type.googleapis.com/envoy.extensions.filters.http.composite.v3.Composite, matcher: MATCHER}`), portInput},
	"envoy.extensions.filters.http.custom_response.v3.CustomResponse.custom_response_matcher":                       {inFilter(`{"@type": type.googleapis.com/envoy.extensions.filters.http.custom_response.v3.CustomResponse, custom_response_matcher: MATCHER}`), portInput},
	"envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaFilterConfig.bucket_matchers":                  {inFilter(`{"@type": type.googleapis.com/envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaFilterConfig, domain: a, rlqs_server: {envoy_grpc: {cluster_name: c}}, bucket_matchers: MATCHER}`), portInput},
	"envoy.extensions.filters.http.rbac.v3.RBAC.matcher":                                                            {inFilter(`{"@type": type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC, matcher: MATCHER}`), portInput},
	"envoy.extensions.filters.http.rbac.v3.RBAC.shadow_matcher":                                                     {inFilter(`{"@type": type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC, shadow_matcher: MATCHER}`), portInput},
	"envoy.extensions.filters.network.rbac.v3.RBAC.matcher":                                                         {`{filter_chains: [{filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.rbac.v3.RBAC, stat_prefix: a, matcher: MATCHER}}, {name: e, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo}}]}]}`, portInput},
	"envoy.extensions.filters.network.rbac.v3.RBAC.shadow_matcher":                                                  {`{filter_chains: [{filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.rbac.v3.RBAC, stat_prefix: a, shadow_matcher: MATCHER}}, {name: e, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo}}]}]}`, portInput},
	"envoy.extensions.filters.network.generic_proxy.v3.RouteConfiguration.routes":                                   {inGenericProxy(`{name: r, routes: MATCHER}`), `{"@type": type.googleapis.com/envoy.extensions.filters.network.generic_proxy.matcher.v3.ServiceMatchInput}`},
	"envoy.extensions.filters.network.generic_proxy.v3.VirtualHost.routes":                                          {inGenericProxy(`{name: r, virtual_hosts: [{name: v, hosts: ["*"], routes: MATCHER}]}`), `{"@type": type.googleapis.com/envoy.extensions.filters.network.generic_proxy.matcher.v3.ServiceMatchInput}`},
	"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.forward_client_cert_matcher": {inManager(`{forward_client_cert_matcher: MATCHER}`, `{}`, ``), portInput},
	"envoy.extensions.router.cluster_specifiers.matcher.v3.MatcherClusterSpecifier.cluster_matcher":                 {inManager(`{}`, `{virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, route: {inline_cluster_specifier_plugin: {extension: {name: p, typed_config: {"@type": type.googleapis.com/envoy.extensions.router.cluster_specifiers.matcher.v3.MatcherClusterSpecifier, cluster_matcher: MATCHER}}}}}]}]}`, ``), portInput},
}

const (
	portInput   = `{"@type": type.googleapis.com/envoy.extensions.matching.common_inputs.network.v3.DestinationPortInput}`
	headerInput = `{"@type": type.googleapis.com/envoy.type.matcher.v3.HttpRequestHeaderMatchInput, header_name: a}`
)

func inGenericProxy(routes string) string {
	return `{filter_chains: [{filters: [{name: g, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.generic_proxy.v3.GenericProxy, stat_prefix: a, codec_config: {name: h, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.generic_proxy.codecs.http1.v3.Http1CodecConfig}}, filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.generic_proxy.router.v3.Router}}], route_config: ` + routes + `}}]}]}`
}

func inFilter(filter string) string {
	return inManager(`{}`, `{}`, `{name: f, typed_config: `+filter+`}, `)
}

// inManager returns a listener with a connection manager that has some fields, routes and a first filter.
func inManager(fields, routes, filter string) string {
	return `{filter_chains: [{filters: [{name: h, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: h, route_config: ` + routes +
		`, ` + strings.Trim(fields, "{}") + strings.Repeat(", ", min(1, len(fields)-2)) + `http_filters: [` + filter + `{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]}}]}]}`
}

// matcherTrial is a verb and a type of matchers.txt at a place.
type matcherTrial struct {
	place protoreflect.FullName
	verb  string
	name  protoreflect.FullName
}

func (m matcherTrial) String() string { return fmt.Sprintf("%s %s %s", m.place, m.verb, m.name) }

// TestMatchers gives each Envoy the inputs, actions and custom matchers of matchers.txt, and keep_matching, at the
// places of matchers in a listener. An older Envoy accepts the same types as the latest, as far as its API has
// them. The exception is 1.38, whose API has the matcher of a composite filter, but which does not read it. A sample
// has the latest Envoy and the oldest.
func TestMatchers(t *testing.T) {
	var latest map[matcherTrial]bool
	last := len(envoyapi.Versions) - 1
	for i, v := range envoyapi.Versions {
		if i%portion.Every(last, last) != 0 {
			continue
		}
		taken := takenByMatchers(t, v)
		if v == envoyapi.Latest {
			latest = taken
		}
		for trial, takes := range taken {
			if unread := v.Name == "1.38.3" && trial.place == "envoy.extensions.filters.http.composite.v3.Composite.matcher"; !unread && takes != latest[trial] {
				t.Errorf("Envoy %s takes %s: %v, and the latest does not do the same", v.Name, trial, takes)
			}
		}
		if len(taken) < 300 {
			t.Errorf("Envoy %s: %d trials only", v.Name, len(taken))
		}
	}
}

// takenByMatchers asks the Envoy of a version which trials it accepts.
func takenByMatchers(t *testing.T, v *envoyapi.Version) map[matcherTrial]bool {
	t.Helper()
	var trials []matcherTrial
	var listeners []map[string]any
	for place := range matcherPlaces {
		if _, lacks := v.Lacks(place); lacks || !v.Holds(place.Parent()) {
			continue
		}
		for _, trial := range trialsAt(place, v) {
			trials = append(trials, trial)
			listeners = append(listeners, trial.listener(t))
		}
	}
	refused := envoytest.Listeners(t, envoytest.Version(t, v.Name), listeners)
	taken := make(map[matcherTrial]bool)
	for i, trial := range trials {
		taken[trial] = !trial.notTaken(refused[i])
	}
	return taken
}

// trialsAt returns the trials of a place with the types that a version holds.
func trialsAt(place protoreflect.FullName, v *envoyapi.Version) (trials []matcherTrial) {
	add := func(verb string, all []protoreflect.FullName) {
		for _, name := range all {
			if v.Holds(name) {
				trials = append(trials, matcherTrial{place, verb, name})
			}
		}
	}
	var inputs, actions, trees []protoreflect.FullName
	for other := range matcherPlaces {
		o := envoyapi.Latest.MatcherPlaceOf(other)
		inputs, actions, trees = append(inputs, o.Inputs...), append(actions, o.Actions...), append(trees, o.Trees...)
	}
	for _, list := range []*[]protoreflect.FullName{&inputs, &actions, &trees} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	add("input", inputs)
	add("action", actions)
	add("tree", trees)
	return append(trials, matcherTrial{place, "keeps", ""})
}

func (m matcherTrial) listener(t *testing.T) (l map[string]any) {
	t.Helper()
	bare := func(name protoreflect.FullName) string {
		return fmt.Sprintf(`{"@type": type.googleapis.com/%s%s}`, name, requiredFields[name])
	}
	place := matcherPlaces[m.place]
	input, action, more := place.input, bare(envoyapi.Latest.MatcherPlaceOf(m.place).Actions[0]), ""
	switch m.verb {
	case "input":
		input = bare(m.name)
	case "action":
		action = bare(m.name)
	case "keeps":
		more = "keep_matching: true, "
	}
	onMatch := `{` + more + `action: {name: a, typed_config: ` + action + `}}`
	matcher := `{matcher_list: {matchers: [{predicate: {single_predicate: {input: {name: i, typed_config: ` + input + `}, value_match: {exact: a}}}, on_match: ` + onMatch + `}]}}`
	if m.verb == "tree" {
		matcher = `{matcher_tree: {input: {name: i, typed_config: ` + input + `}, custom_match: {name: c, typed_config: ` + bare(m.name) + `}}}`
	}
	if err := yaml.Unmarshal([]byte(strings.Replace(place.listener, "MATCHER", matcher, 1)), &l); err != nil {
		t.Fatalf("%v\n%s", err, place.listener)
	}
	return l
}

// requiredFields has the fields that a type needs before Envoy checks whether it accepts the type.
var requiredFields = map[protoreflect.FullName]string{
	"envoy.config.rbac.v3.Action": ", name: a",
	"envoy.extensions.matching.common_inputs.network.v3.DynamicMetadataInput": ", filter: a, path: [{key: a}]",
	"envoy.extensions.matching.common_inputs.network.v3.FilterStateInput":     ", key: a",
	"envoy.type.matcher.v3.HttpRequestHeaderMatchInput":                       ", header_name: a",
	"envoy.type.matcher.v3.HttpRequestQueryParamMatchInput":                   ", query_param: a",
	"envoy.type.matcher.v3.HttpRequestTrailerMatchInput":                      ", header_name: a",
	"envoy.type.matcher.v3.HttpResponseHeaderMatchInput":                      ", header_name: a",
	"envoy.type.matcher.v3.HttpResponseTrailerMatchInput":                     ", header_name: a",
}

// notTaken reports whether Envoy refuses the type, and not the content of the message.
func (m matcherTrial) notTaken(said string) bool {
	if m.verb == "keeps" {
		return strings.Contains(said, "keep_matching")
	}
	return notFound.MatchString(said) || strings.Contains(said, "requirement violation")
}
