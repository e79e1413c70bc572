package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"xdspub/source/load"
	"xdspub/tools/fixture"
)

// FuzzEdits edits a source tree as its input says, with a reconcile after each edit by one Pipeline with
// caches. Findings and output must always equal those of a new Pipeline for the same tree, and no file moves
// while the tree is invalid.
func FuzzEdits(f *testing.F) {
	stock := newVariants(f)
	for _, edits := range [][]byte{
		{0, put, listenerIn, 0, 0, drop, listenerIn, tick, 5, tick, 11},
		{1, put, listenerIn, 0, 1, put, routesMain, 1, 4, damage, 4, 99, heal, rename, 4, 5},
		{2, put, clusterTLS, 0, 2, put, secretCA, 0, 3, take, secretCA, stop, put, secretCA, 1, 0},
		{3, put, listenerScoped, 0, 6, batch, put, routesMain, 2, 6, put, hostMain, 0, 7, fold, restart, 1, fold, drop, hostMain},
		{12, put, layerFlags, 0, 0, copied, layerFlags, 1, 1, rename, 1, 0, drop, layerFlags},
		{0, put, routesMain, 2, 0, put, hostMain, 0, 1, put, hostMain, 1, 1},
		{4, put, clusterTLS, 0, 0, put, secretToken, 0, 1, drop, secretToken, tick, 9, drop, secretCA, tick, 5, tick, 9},
		{16, put, listenerIn, 0, 0, put, endpointsBlue, 1, 1, take, endpointsGreen, put, clusterGreen, 1, 2, put, endpointsBlue, 0, 1},
		{24, put, listenerIn, 0, 0, put, routesMain, 1, 0, put, hostMain, 0, 1, put, routesMain, 2, 0, tick, 15, put, secretToken, 0, 0},
		{0, put, listenerIn, 0, 0, put, listenerScoped, 0, 1, batch, put, listenerIn, 4, 0, put, listenerScoped, 2, 1, batch, put, listenerIn, 3, 0, put, listenerScoped, 3, 1},
	} {
		f.Add(edits)
	}
	seeds := uint64(10)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		random, edits := rand.New(rand.NewPCG(seed, 0)), make([]byte, 150)
		for i := range edits {
			edits[i] = byte(random.Uint32())
		}
		f.Add(edits)
	}
	for seed := range 2 * seeds { // mostly edits of content
		random := rand.New(rand.NewPCG(seed, 1))
		edits := []byte{byte(random.IntN(48)), put, listenerIn, 0, 0, put, secretToken, 0, 2}
		if seed%4 == 1 {
			edits = append(edits, put, listenerScoped, 1, 6)
		}
		for range 40 {
			edits = append(edits, alter, []byte{clusterBlue, clusterGreen, endpointsBlue, endpointsGreen, routesMain, listenerIn, secretToken}[random.IntN(7)], byte(random.IntN(2)))
			switch random.IntN(12) {
			case 0:
				edits = append(edits, []byte{tick, restart, drop, put}[random.IntN(4)], byte(random.Uint32()), 0, 0)
			case 1:
				edits = append(edits, stop)
			}
		}
		f.Add(edits)
	}
	f.Fuzz(func(t *testing.T, edits []byte) {
		const most = 300 // bytes; longer inputs find no more faults
		d := newWorkbench(t, stock, &script{edits[:min(len(edits), most)]})
		for len(d.script.rest) > 0 {
			if d.edit() {
				d.pass(false)
			}
		}
		d.end()
	})
}

// The kinds of edits. In the script, each is followed by the arguments in its comment.
const (
	drop    = iota    // resource: and the resources that need it
	copied            // resource, variant, file: another file may have it too
	take              // resource: other resources may need it
	rename            // file, file
	damage            // file, length
	heal              // every file gets its intended content
	fold              // the folder gets another name
	tick              // minutes
	restart           // mode of endpoints: a new pipeline
	stop              // the next publish ends after its first step
	batch             // the next edit is combined with the one after it
	alter             // resource, variant: in its file
	put               // resource, variant, file: and the resources that it needs
	kinds   = put + 4 // the meaning of all higher numbers
)

// Resources of the stock.
const (
	clusterBlue = iota
	clusterGreen
	clusterTLS
	endpointsBlue
	endpointsGreen
	routesMain
	hostMain
	scopeMain
	listenerIn
	listenerScoped
	extensionMarker
	secretCA
	secretToken
	layerFlags
)

// variants are the possible contents of a resource, as YAML and decoded.
type variants struct {
	needs []int
	text  []string
	data  []*discoveryv3.DiscoveryResponse
}

func newVariants(f *testing.F) []variants {
	const (
		tls    = `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: tls, transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {validation_context_sds_secret_config: {name: ca%s}}}}}`
		ca     = `{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: ca, validation_context: {trusted_ca: {inline_string: %q}}}`
		hosts  = `{"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: main, vhds: {config_source: {ads: {}}}}`
		host   = `{"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, name: main/h, resource: {"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: h, domains: [%s]}}`
		scope  = `{"@type": type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration, name: s, route_configuration_name: main, key: {fragments: [{string_key: %q}]}}`
		scoped = `rds: {route_config_name: main, config_source: {ads: {}}}`
		scopes = `scoped_routes: {name: s, scope_key_builder: {fragments: [{header_value_extractor: {name: x, index: 0}}]}, rds_config_source: {ads: {}}, scoped_rds: {scoped_rds_config_source: {ads: {}}}}`
		marker = `{"@type": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig, name: marker, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation%s}}`
		asked  = `http_filters: [{name: marker, config_discovery: {config_source: {ads: {}}, type_urls: [type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation]}}, `
	)
	at := func(listener string, port int) string {
		return regexp.MustCompile(`port_value: \d+`).ReplaceAllString(listener, fmt.Sprint("port_value: ", port))
	}
	in := fmt.Sprintf(fixture.Listener, "a")
	other := at(strings.Replace(in, "name: in,", "name: other,", 1), 10001)
	policy := func(assignment string) string {
		return strings.TrimSuffix(assignment, "}") + ", policy: {overprovisioning_factor: 150}}"
	}
	stock := []variants{
		clusterBlue:     {needs: []int{endpointsBlue}, text: []string{fixture.Blue, strings.TrimSuffix(fixture.Blue, "}") + ", connect_timeout: 3s}", strings.Replace(fixture.Blue, "type: EDS", "type: STATIC", 1)}},
		clusterGreen:    {needs: []int{endpointsGreen}, text: []string{fixture.Green, strings.TrimSuffix(fixture.Green, "}") + ", eds_cluster_config: {service_name: blue}}"}},
		clusterTLS:      {needs: []int{secretCA}, text: []string{fmt.Sprintf(tls, ""), fmt.Sprintf(tls, ", sds_config: {ads: {}}")}},
		endpointsBlue:   {needs: []int{clusterBlue}, text: []string{fixture.BlueEndpoints, policy(fixture.BlueEndpoints)}},
		endpointsGreen:  {needs: []int{clusterGreen}, text: []string{fixture.GreenEndpoints, policy(fixture.GreenEndpoints)}},
		routesMain:      {needs: []int{clusterBlue, clusterGreen}, text: []string{fmt.Sprintf(fixture.RoutesTo, "blue"), fmt.Sprintf(fixture.RoutesTo, "green"), hosts}},
		hostMain:        {needs: []int{routesMain}, text: []string{fmt.Sprintf(host, "h"), fmt.Sprintf(host, "h, i")}},
		scopeMain:       {needs: []int{routesMain, listenerScoped}, text: []string{fmt.Sprintf(scope, "k"), fmt.Sprintf(scope, "l")}},
		listenerIn:      {needs: []int{routesMain, extensionMarker}, text: []string{in, fmt.Sprintf(fixture.Listener, "b"), strings.Replace(in, "http_filters: [", asked, 1), at(in, 10001), at(in, 10002)}},
		listenerScoped:  {needs: []int{scopeMain}, text: []string{strings.Replace(other, scoped, scopes, 1), other, at(other, 10000), at(other, 10002)}},
		extensionMarker: {text: []string{fmt.Sprintf(marker, ""), fmt.Sprintf(marker, ", mutations: {response_mutations: [{remove: x}]}")}},
		secretCA:        {text: []string{fmt.Sprintf(ca, "x"), fmt.Sprintf(ca, "y")}},
		secretToken:     {text: []string{fmt.Sprintf(fixture.Secret, "x"), fmt.Sprintf(fixture.Secret, "y")}},
		layerFlags:      {text: []string{fixture.Layer, strings.Replace(fixture.Layer, "a: 1", "a: 1.5", 1)}}, // YAML can't have this value
	}
	for i := range stock {
		for _, text := range stock[i].text {
			response, result := load.Response(load.Input{Name: text, Format: "yaml", Data: []byte(text)})
			if response == nil {
				f.Fatal(result.Diagnostics)
			}
			stock[i].data = append(stock[i].data, response)
		}
	}
	return stock
}
