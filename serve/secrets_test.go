package serve_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	xdstypev3 "github.com/cncf/xds/go/xds/type/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	clusterservice "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	listenerservice "github.com/envoyproxy/go-control-plane/envoy/service/listener/v3"
	routeservice "github.com/envoyproxy/go-control-plane/envoy/service/route/v3"
	secretservice "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/serve"
	"xdspub/serve/admit"
	"xdspub/serve/csds"
	"xdspub/source/load"
	"xdspub/tools/canary"
	"xdspub/xds"
	"xdspub/xds/params"
)

// FuzzSecrets publishes random variants with secrets, with random rules for dynamic parameters. Random
// clients subscribe to them in each way. A client must get exactly the resources for its parameters, or no
// resource if a secret in them is not for its certificate. The logs, metrics and status must contain no
// secret.
func FuzzSecrets(f *testing.F) {
	f.Add(uint64(22)) // a retired variant, and a client that comes later
	f.Fuzz(secretsAtRandom)
}

// TestRandomSecrets runs FuzzSecrets with 8 fixed seeds, 2 with -short, or with random seeds for the time in
// the environment variable XDSPUB_SECRETS (scripts/soak). The name of a test is its seed.
func TestRandomSecrets(t *testing.T) {
	run := func(seed uint64) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { secretsAtRandom(t, seed) })
	}
	text := os.Getenv("XDSPUB_SECRETS")
	if text == "" {
		seeds := uint64(8)
		if testing.Short() {
			seeds = 2
		}
		for seed := range seeds {
			run(seed)
		}
		return
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("XDSPUB_SECRETS: %v", err)
	}
	n := 0
	for end := time.Now().Add(length); time.Now().Before(end) && !t.Failed(); n++ {
		run(rand.Uint64())
	}
	t.Logf("%d seeds", n)
}

// planted is a resource of the tree with texts as marks: canary in a field that holds a secret, open in
// another field; "" for no mark.
type planted struct {
	of           *xds.Type
	name         string
	constraints  string // "" for all clients
	open, canary string
	// hosts is the route configuration in the resource that asks for virtual hosts; "" for none.
	hosts string
	text  string // YAML
}

// sensitive reports whether a client needs a right to the resource.
func (d planted) sensitive() bool { return d.canary != "" || d.of == xds.Secret }

func (d planted) matches(p params.Parameters) bool {
	return d.constraints == "" || constraints(d.constraints).Matches(p)
}

// keys returns the keys of the constraints.
func (d planted) keys() (keys []string) {
	for _, one := range strings.FieldsFunc(d.constraints, func(c rune) bool { return strings.ContainsRune(",|!", c) }) {
		key, _, _ := strings.Cut(one, "=")
		keys = append(keys, key)
	}
	return keys
}

// right permits a value of a dynamic parameter, or a node id, to clients whose certificate has a name.
type right struct{ key, value, san string }

// gives reports whether the right permits a value to a certificate with a name. value and san are exact, or
// end with a wildcard. If both end with *, the two * match the same text.
func (r right) gives(key, value, name string) bool {
	of, ok := behind(r.value, value)
	san, matches := behind(r.san, name)
	same := strings.Count(r.value, "*") == 1 && strings.Count(r.san, "*") == 1
	return r.key == key && ok && matches && (!same || of == san)
}

// behind reports whether a pattern matches a text, and returns the text that its wildcard matches.
func behind(pattern, text string) (rest string, ok bool) {
	before := strings.TrimRight(pattern, "*")
	if before == pattern {
		return "", pattern == text
	}
	rest, ok = strings.CutPrefix(text, before)
	return rest, ok && rest != ""
}

const nodeID = "" // the key of rights to a node id

// secretsWorld is a server with its resources and rules.
type secretsWorld struct {
	*running
	t          *testing.T
	r          *rand.Rand
	tls        func(names ...string) *tls.Config // nil without TLS
	byNode     map[string]string                 // the field of the node from which a parameter derives, by key
	rights     []right
	documents  []planted
	known      map[string]*xds.Resource // by text
	snapshot   *xds.Snapshot
	number     int
	everServed map[string]planted // by text
}

// person is a client.
type person struct {
	*secretsWorld
	local bool
	names []string // in the certificate
	node  *corev3.Node
	sets  []params.Parameters // of the locators; nil without locators
	conn  *grpc.ClientConn
	http  *http.Client

	mu   sync.Mutex
	seen map[string]bool // the marks in the responses of streams
}

// isNode reports whether the rules permit the client's node id.
func (p *person) isNode() bool { return p.local || p.has(nodeID, p.node.GetId()) }

// has reports whether the rules permit a value to the client. Without rules every value is permitted.
func (p *person) has(key, value string) bool {
	ruled := false
	for _, r := range p.rights {
		ruled = ruled || r.key == key
		if slices.ContainsFunc(p.names, func(name string) bool { return r.gives(key, value, name) }) {
			return true
		}
	}
	return !ruled
}

// parameters returns the parameters that select the client's resources.
func (p *person) parameters() []params.Parameters {
	if p.sets != nil {
		return p.sets
	}
	of := make(params.Parameters)
	for key, field := range p.byNode {
		if field == "id" {
			of[key] = p.node.GetId()
		} else if v := p.node.GetMetadata().GetFields()[field]; v != nil {
			of[key] = v.GetStringValue()
		}
	}
	return []params.Parameters{of}
}

// admitted reports whether the rules permit the client's node and parameters.
func (p *person) admitted() bool {
	for _, set := range p.parameters() {
		for key, value := range set {
			if !p.local && !p.has(key, value) {
				return false
			}
		}
	}
	return p.isNode()
}

// shows reports whether a rule or the node id proves a parameter of the client.
func (p *person) shows(key string) bool {
	ruled := func(key string) bool {
		return slices.ContainsFunc(p.rights, func(r right) bool { return r.key == key })
	}
	return ruled(key) || ruled(nodeID) && p.byNode[key] == "id" && p.sets == nil
}

// mayHave reports whether the client may get the secret in a resource. sets are the client's parameter sets
// that match the constraints of the resource.
func (p *person) mayHave(d planted, sets []params.Parameters) bool {
	if p.local || p.tls == nil {
		return p.local
	}
	return !slices.ContainsFunc(sets, func(set params.Parameters) bool {
		return slices.ContainsFunc(d.keys(), func(key string) bool { _, has := set[key]; return has && !p.shows(key) })
	})
}

// way is a way of subscribing.
type way struct {
	name   string
	delta  bool
	single bool
	rest   bool
}

// inlines reports whether the server inlines virtual hosts into other resources.
func (w way) inlines() bool { return !w.delta }

// gets returns the documents that a client gets by a name, with their inlined parts, and whether the client
// may have the secrets in them.
func (p *person) gets(all []planted, w way, of *xds.Type, asked string) (got []planted, may bool) {
	may = true
	take := func(d planted, sets []params.Parameters) {
		got = append(got, d)
		may = may && (!d.sensitive() || p.mayHave(d, sets))
	}
	for _, d := range all {
		collection := strings.HasSuffix(asked, "/*") && strings.HasPrefix(d.name, strings.TrimSuffix(asked, "*"))
		alias := asked == d.name+".example"
		if d.of != of || asked != d.name && asked != "*" && !collection && !alias {
			continue
		}
		var sets []params.Parameters
		for _, set := range p.parameters() {
			if d.matches(set) {
				sets = append(sets, set)
			}
		}
		if len(sets) == 0 {
			continue
		}
		take(d, sets)
		for _, host := range all {
			if host.of != xds.VirtualHost || !w.inlines() || d.hosts == "" || !strings.HasPrefix(host.name, d.hosts+"/") {
				continue
			}
			if len(p.sets) > 1 && host.constraints == "" || len(p.sets) <= 1 && host.matches(sets[0]) {
				take(host, sets)
			}
		}
	}
	return got, may
}

// marks returns the marks of documents.
func marks(list []planted) map[string]bool {
	all := make(map[string]bool)
	for _, d := range list {
		all[d.open], all[d.canary] = true, true
	}
	delete(all, "")
	return all
}

var mark = regexp.MustCompile(`(?:canary|open)\d+x`)

func marksIn(data []byte) map[string]bool {
	all := make(map[string]bool)
	for _, m := range mark.FindAll(data, -1) {
		all[string(m)] = true
	}
	return all
}

// sentinel is a resource of each type for all clients, so that each request has an answer.
const sentinel = "sentinel"

// askedTypes are the types that clients subscribe to.
var askedTypes = []*xds.Type{xds.Cluster, xds.Endpoints, xds.Listener, xds.RouteConfiguration, xds.VirtualHost, xds.ScopedRoutes, xds.Secret, xds.ExtensionConfig}

const collected = "xdstp://a.example/envoy.config.cluster.v3.Cluster/c/x"

// namesOf returns the names of the resources of a type.
func namesOf(of *xds.Type) []string {
	switch of {
	case xds.Cluster:
		return []string{"a", "b", collected}
	case xds.VirtualHost:
		return []string{"a/h", "a/i", "b/h"}
	}
	return []string{"a", "b"}
}

func sentinelOf(of *xds.Type) string {
	if of == xds.VirtualHost {
		return "none/" + sentinel
	}
	return sentinel
}

// told are ways to divide clients by exclusive constraints.
var told = [][]string{
	{""}, {"env=prod"}, {"env=prod", "!env=prod"}, {"env", "!env"}, {"env=prod", "env=test"}, {"zone=1"}, {"zone=1", "!zone"},
	{"env=prod,zone=1", "env=prod,!zone=1", "!env=prod"}, {"id=edge-1", "id=edge-2"}, {"env=prod|zone=1", "!env=prod,!zone=1"},
}

// edit changes some of the documents.
func (w *secretsWorld) edit() {
	for _, of := range askedTypes {
		for _, name := range namesOf(of) {
			same := func(d planted) bool { return d.of == of && d.name == name }
			switch was := slices.IndexFunc(w.documents, same); {
			case was >= 0 && w.r.IntN(3) == 0: // other constraints for the same resource
				kept := w.documents[was]
				kept.constraints = told[w.r.IntN(len(told))][0]
				w.documents = append(slices.DeleteFunc(w.documents, same), w.written(kept))
				continue
			case was >= 0 && w.r.IntN(2) == 0:
				continue
			}
			w.documents = slices.DeleteFunc(w.documents, same)
			for _, constraints := range told[w.r.IntN(len(told))] {
				if w.r.IntN(5) > 0 {
					w.documents = append(w.documents, w.planted(of, name, constraints))
				}
			}
		}
	}
}

func (w *secretsWorld) mark(kind string) string {
	w.number++
	return fmt.Sprintf("%s%dx", kind, w.number)
}

// planted returns a random resource, mostly with a secret.
func (w *secretsWorld) planted(of *xds.Type, name, constraints string) planted {
	d := planted{of: of, name: name, constraints: constraints}
	if w.r.IntN(3) > 0 && name != sentinelOf(of) {
		d.canary = w.mark("canary")
	}
	if of != xds.Secret && of != xds.ExtensionConfig || d.canary == "" {
		d.open = w.mark("open")
	}
	payload := fmt.Sprintf(`{"@type": type.googleapis.com/google.protobuf.StringValue, value: %s}`, d.open)
	header := ""
	if d.canary != "" {
		payload = w.payload(d.canary)
		if w.r.IntN(4) == 0 && (of == xds.RouteConfiguration || of == xds.VirtualHost) {
			header = fmt.Sprintf(`, request_headers_to_add: [{header: {key: Authorization, value: Bearer %s}}]`, d.canary)
			payload = `{"@type": type.googleapis.com/google.protobuf.StringValue}`
		}
	}
	asks := func(routes string) string {
		if name == sentinelOf(of) || w.r.IntN(4) == 0 {
			return ""
		}
		d.hosts = routes
		return ", vhds: {config_source: {ads: {}}}"
	}
	routes := []string{"a", "b"}[w.r.IntN(2)]
	typed := map[*xds.Type]func() string{
		xds.Cluster: func() string {
			return fmt.Sprintf(`envoy.config.cluster.v3.Cluster, name: '%s', connect_timeout: 1s, alt_stat_name: %s, transport_socket: {name: t, typed_config: %s}`, name, d.open, payload)
		},
		xds.Endpoints: func() string {
			return fmt.Sprintf(`envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: %s, endpoints: [{locality: {region: %s}, lb_endpoints: [{metadata: {typed_filter_metadata: {m: %s}}}]}]`, name, d.open, payload)
		},
		xds.Listener: func() string {
			return fmt.Sprintf(`envoy.config.listener.v3.Listener, name: %s, stat_prefix: %s, filter_chains: [{filters: [{name: f, typed_config: %s}, {name: h, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s, route_config: {name: %s%s}}}]}]`, name, d.open, payload, routes, asks(routes))
		},
		xds.RouteConfiguration: func() string {
			return fmt.Sprintf(`envoy.config.route.v3.RouteConfiguration, name: %s, request_headers_to_remove: [%s], typed_per_filter_config: {f: %s}%s%s`, name, d.open, payload, header, asks(name))
		},
		xds.VirtualHost: func() string {
			return fmt.Sprintf(`envoy.config.route.v3.VirtualHost, name: h, domains: ['%s.example'], request_headers_to_remove: [%s], typed_per_filter_config: {f: %s}%s`, name[strings.Index(name, "/")+1:], d.open, payload, header)
		},
		xds.ScopedRoutes: func() string {
			return fmt.Sprintf(`envoy.config.route.v3.ScopedRouteConfiguration, name: %s, key: {fragments: [{string_key: %s}]}, route_configuration: {name: %s, typed_per_filter_config: {f: %s}%s}`, name, d.open, routes, payload, asks(routes))
		},
		xds.Secret: func() string {
			if d.canary != "" {
				return fmt.Sprintf(`envoy.extensions.transport_sockets.tls.v3.Secret, name: %s, generic_secret: {secret: {inline_string: %s}}`, name, d.canary)
			}
			return fmt.Sprintf(`envoy.extensions.transport_sockets.tls.v3.Secret, name: %s, validation_context: {trusted_ca: {inline_string: %s}}`, name, d.open)
		},
		xds.ExtensionConfig: func() string {
			return fmt.Sprintf(`envoy.config.core.v3.TypedExtensionConfig, name: %s, typed_config: %s`, name, payload)
		},
	}
	d.text = `{"@type": type.googleapis.com/` + typed[of]() + "}"
	return w.written(d)
}

// written replaces the constraints of a resource.
func (w *secretsWorld) written(d planted) planted {
	if _, inner, ok := strings.Cut(d.text, ", resource: "); ok {
		d.text = strings.TrimSuffix(inner, "}")
	}
	name := fmt.Sprintf("name: '%s'", d.name)
	if d.constraints != "" {
		text, err := protojson.Marshal(constraints(d.constraints).Proto())
		if err != nil {
			w.t.Fatal(err)
		}
		name = fmt.Sprintf("resource_name: {name: '%s', dynamic_parameter_constraints: %s}", d.name, text)
	}
	d.text = `{"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, ` + name + ", resource: " + d.text + "}"
	return d
}

// payload returns an Any with a text in a random field for secrets, sometimes inside a TypedStruct.
func (w *secretsWorld) payload(text string) string {
	fd := canary.Fields()[w.r.IntN(len(canary.Fields()))]
	m := canary.Plant(fd, text)
	a, err := anypb.New(m)
	if err == nil && w.r.IntN(3) == 0 && fd.Message() == nil {
		var is []byte
		if is, err = protojson.Marshal(m); err == nil {
			inside := &structpb.Struct{}
			err = protojson.Unmarshal(is, inside)
			a, _ = anypb.New(&xdstypev3.TypedStruct{TypeUrl: a.GetTypeUrl(), Value: inside})
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
	is, err := protojson.Marshal(a)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(is)
}

// publish publishes the documents, sometimes as a change of the last Snapshot, and sometimes as a new
// Snapshot.
func (w *secretsWorld) publish() {
	var all []*xds.Resource
	is := make(map[*xds.Resource]bool)
	for _, d := range w.documents {
		w.everServed[d.text] = d
		r := w.known[d.text]
		if r == nil {
			result := load.Parse(load.Input{Name: "tree.yaml", Format: "yaml", Data: []byte(d.text), Streams: true})
			if len(result.Diagnostics) > 0 {
				w.t.Fatal(result.Diagnostics, d.text)
			}
			r = result.Resources()[0]
			w.known[d.text] = r
		}
		all = append(all, r)
		is[r] = true
	}
	next := xds.NewSnapshot(all)
	if w.snapshot != nil && w.r.IntN(2) == 0 {
		var change xds.Change
		for _, was := range w.snapshot.All() {
			if !is[was] {
				change.Removed = append(change.Removed, was)
			}
			delete(is, was)
		}
		change.Added = slices.Collect(maps.Keys(is))
		next = w.snapshot.Apply(change)
	}
	w.snapshot = next
	if err := w.Publish(w.t.Context(), next); err != nil {
		w.t.Fatal(err)
	}
}

func (w *secretsWorld) trim() {
	if _, _, err := w.Trim(w.t.Context(), time.Now().Add(time.Minute)); err != nil {
		w.t.Fatal(err)
	}
}

// ways returns all ways to subscribe.
func (p *person) ways() []way {
	list := []way{{name: "state of the world"}, {name: "incremental", delta: true}, {name: "one service", single: true}, {name: "one incremental service", single: true, delta: true}}
	if !p.local && p.sets == nil {
		list = append(list, way{name: "REST", rest: true})
	}
	return list
}

// ask subscribes to a name, or to all resources, and to the sentinel. ask returns the marks in the responses,
// and whether the client was refused.
func (p *person) ask(w way, of *xds.Type, name string) (got map[string]bool, refused bool) {
	names := []string{name, sentinelOf(of)}
	if name == "*" {
		names = names[:1]
	}
	if w.rest {
		return p.post(of, names)
	}
	var locators []*discoveryv3.ResourceLocator
	for _, set := range p.sets {
		for _, name := range names {
			locators = append(locators, &discoveryv3.ResourceLocator{Name: name, DynamicParameters: set})
		}
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	var answer proto.Message
	var err error
	if w.delta {
		q := &discoveryv3.DeltaDiscoveryRequest{Node: p.node, TypeUrl: of.URL(), ResourceNamesSubscribe: names, ResourceLocatorsSubscribe: locators}
		if p.sets != nil {
			q.ResourceNamesSubscribe = nil
		}
		answer, err = exchange(p.deltaStream(ctx, w, of), q)
	} else {
		q := &discoveryv3.DiscoveryRequest{Node: p.node, TypeUrl: of.URL(), ResourceNames: names, ResourceLocators: locators}
		if p.sets != nil {
			q.ResourceNames = nil
		}
		answer, err = exchange(p.sotwStream(ctx, w, of), q)
	}
	if err != nil {
		if status.Code(err) != codes.PermissionDenied {
			p.t.Fatalf("%s %q: %v", of, name, err)
		}
		return marksIn([]byte(err.Error())), true
	}
	data, err := proto.Marshal(answer)
	if err != nil {
		p.t.Fatal(err)
	}
	return marksIn(data), false
}

// exchange sends a request and returns the first response.
func exchange[Q, R any](s grpc.BidiStreamingClient[Q, R], q *Q) (*R, error) {
	_ = s.Send(q) // Recv has the error
	return s.Recv()
}

func must[T any](p *person, is T, err error) T {
	if err != nil {
		p.t.Fatal(err)
	}
	return is
}

func (p *person) sotwStream(ctx context.Context, w way, of *xds.Type) (s sotwStream) {
	var err error
	switch {
	case w.single && of == xds.RouteConfiguration:
		s, err = routeservice.NewRouteDiscoveryServiceClient(p.conn).StreamRoutes(ctx)
	case w.single && of == xds.Secret:
		s, err = secretservice.NewSecretDiscoveryServiceClient(p.conn).StreamSecrets(ctx)
	case w.single && of == xds.Cluster:
		s, err = clusterservice.NewClusterDiscoveryServiceClient(p.conn).StreamClusters(ctx)
	case w.single && of == xds.Listener:
		s, err = listenerservice.NewListenerDiscoveryServiceClient(p.conn).StreamListeners(ctx)
	default:
		s, err = discoveryv3.NewAggregatedDiscoveryServiceClient(p.conn).StreamAggregatedResources(ctx)
	}
	return must(p, s, err)
}

func (p *person) deltaStream(ctx context.Context, w way, of *xds.Type) (s deltaStream) {
	var err error
	switch {
	case w.single && of == xds.VirtualHost:
		s, err = routeservice.NewVirtualHostDiscoveryServiceClient(p.conn).DeltaVirtualHosts(ctx)
	case w.single && of == xds.Secret:
		s, err = secretservice.NewSecretDiscoveryServiceClient(p.conn).DeltaSecrets(ctx)
	case w.single && of == xds.Cluster:
		s, err = clusterservice.NewClusterDiscoveryServiceClient(p.conn).DeltaClusters(ctx)
	default:
		s, err = discoveryv3.NewAggregatedDiscoveryServiceClient(p.conn).DeltaAggregatedResources(ctx)
	}
	return must(p, s, err)
}

// paths are the paths of the types over REST.
var paths = map[*xds.Type]string{
	xds.Cluster: "clusters", xds.Endpoints: "endpoints", xds.Listener: "listeners", xds.RouteConfiguration: "routes", xds.ScopedRoutes: "scoped-routes", xds.Secret: "secrets", xds.ExtensionConfig: "extension_configs",
}

func (p *person) post(of *xds.Type, names []string) (got map[string]bool, refused bool) {
	if names[0] == "*" {
		names = nil
	}
	body, err := protojson.Marshal(&discoveryv3.DiscoveryRequest{Node: p.node, ResourceNames: names})
	if err != nil {
		p.t.Fatal(err)
	}
	scheme := "http://"
	if p.tls != nil {
		scheme = "https://"
	}
	r, err := p.http.Post(scheme+p.web+"/v3/discovery:"+paths[of], "application/json", bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK && r.StatusCode != http.StatusForbidden {
		p.t.Fatalf("%s %q: %s, %v", of, names, r.Status, err)
	}
	return marksIn(text), r.StatusCode == http.StatusForbidden
}

// asked returns the names of a type that a client can subscribe to.
func (p *person) asked(w way, of *xds.Type) []string {
	names := namesOf(of)
	switch of {
	case xds.Cluster:
		if names = append(names, "*"); !w.rest {
			names = append(names, strings.TrimSuffix(collected, "x")+"*")
		}
	case xds.Listener, xds.ScopedRoutes:
		names = append(names, "*")
	case xds.VirtualHost:
		if p.sets == nil {
			names = append(names, "a/h.example")
		}
	}
	return names
}

// probe sends a request and checks the answer: exactly, or, if retired resources may remain, against all
// resources served so far.
func (p *person) probe(exactly bool) {
	ways := p.ways()
	w, of := ways[p.r.IntN(len(ways))], askedTypes[p.r.IntN(len(askedTypes))]
	if p.r.IntN(4) == 0 {
		of = xds.RouteConfiguration // contains the inlined virtual hosts of other clients
	}
	if of == xds.VirtualHost {
		w = way{name: "incremental", delta: true, single: p.r.IntN(2) == 0}
	}
	names := p.asked(w, of)
	name := names[p.r.IntN(len(names))]
	got, refused := p.ask(w, of, name)
	asks := fmt.Sprintf("%v asks by %s for %s %q", p, w.name, of, name)
	all := p.documents
	if !exactly {
		all = slices.Collect(maps.Values(p.everServed))
	}
	docs, may := p.gets(all, w, of, name)
	if name != "*" {
		always, _ := p.gets(all, w, of, sentinelOf(of))
		docs = append(docs, always...)
	}
	mayNot := !p.admitted() || !may || of == xds.Secret && p.tls == nil && !p.local
	want := marks(docs)
	switch {
	case exactly && refused != mayNot, refused && !mayNot:
		p.t.Errorf("%s: refused is %v, want %v\n%s", asks, refused, mayNot, plantedText(docs))
	case refused && len(got) > 0:
		p.t.Errorf("%s, is refused, and is sent %v", asks, got)
	case exactly && !refused && !maps.Equal(got, want):
		p.t.Errorf("%s: is sent %v, want %v\n%s", asks, got, want, plantedText(docs))
	case !exactly:
		p.onlyAllowed(asks, got)
	}
}

func plantedText(list []planted) string {
	var b strings.Builder
	for _, d := range list {
		fmt.Fprintf(&b, "%s %q {%s} %s %s %s\n", d.of, d.name, d.constraints, d.open, d.canary, d.hosts)
	}
	return b.String()
}

func (p *person) String() string {
	by := "TCP"
	if p.local {
		by = "a Unix socket"
	} else if p.tls != nil {
		by = fmt.Sprintf("TLS as %q", p.names)
	}
	return fmt.Sprintf("a client by %s, %v, node %q %v with %v, byNode %v, rights %v,", by, p.sets != nil, p.node.GetId(), p.node.GetMetadata(), p.parameters(), p.byNode, p.rights)
}

// onlyAllowed checks that every mark that a client got was allowed for it.
func (p *person) onlyAllowed(what string, got map[string]bool) {
	for m := range got {
		of := 0
		for _, d := range p.everServed {
			if d.open != m && d.canary != m {
				continue
			}
			for _, set := range p.parameters() {
				if d.matches(set) && (!d.sensitive() || p.mayHave(d, []params.Parameters{set})) {
					of++
				}
			}
		}
		if of == 0 {
			p.t.Errorf("%s: is sent %s, which was never for it", what, m)
		}
	}
}

// follow keeps streams that receive and acknowledge all changes, until ctx ends.
func (p *person) follow(ctx context.Context) (ended func()) {
	var running sync.WaitGroup
	see := func(m proto.Message) {
		data, _ := proto.Marshal(m)
		p.mu.Lock()
		defer p.mu.Unlock()
		maps.Copy(p.seen, marksIn(data))
	}
	names := func(of *xds.Type) (list []string, locators []*discoveryv3.ResourceLocator) {
		list = namesOf(of)
		for _, set := range p.sets {
			for _, name := range list {
				locators = append(locators, &discoveryv3.ResourceLocator{Name: name, DynamicParameters: set})
			}
		}
		if p.sets != nil {
			list = nil
		}
		return list, locators
	}
	delta, sotw := p.deltaStream(ctx, way{}, nil), p.sotwStream(ctx, way{}, nil)
	running.Go(func() {
		for _, of := range askedTypes {
			q := &discoveryv3.DeltaDiscoveryRequest{Node: p.node, TypeUrl: of.URL()}
			q.ResourceNamesSubscribe, q.ResourceLocatorsSubscribe = names(of)
			_ = delta.Send(q)
		}
		for {
			r, err := delta.Recv()
			if err != nil {
				return
			}
			see(r)
			_ = delta.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()})
		}
	})
	running.Go(func() {
		ask := func(url, nonce, version string) {
			q := &discoveryv3.DiscoveryRequest{Node: p.node, TypeUrl: url, ResponseNonce: nonce, VersionInfo: version}
			q.ResourceNames, q.ResourceLocators = names(xds.TypeOfURL(url))
			_ = sotw.Send(q)
		}
		for _, of := range askedTypes {
			ask(of.URL(), "", "")
		}
		for {
			r, err := sotw.Recv()
			if err != nil {
				return
			}
			see(r)
			ask(r.GetTypeUrl(), r.GetNonce(), r.GetVersionInfo())
		}
	})
	return running.Wait
}

// mostRights are the possible rights of a server.
var mostRights = []right{
	{"env", "prod", "spiffe://test/prod-1"}, {"env", "prod", "spiffe://test/**"}, {"env", "test", "spiffe://test/edge-*"}, {"env", "**", "spiffe://test/edge-1"},
	{"zone", "1", "spiffe://test/edge-*"}, {nodeID, "edge-*", "spiffe://test/edge-*"}, {nodeID, "**", "spiffe://test/prod-1"},
}

func newSecretsWorld(t *testing.T, r *rand.Rand) *secretsWorld {
	w := &secretsWorld{t: t, r: r, byNode: make(map[string]string), known: make(map[string]*xds.Resource), everServed: make(map[string]planted)}
	var o serve.Options
	for _, of := range []string{"env=metadata.env", "zone=metadata.zone", "id=id"} {
		if p, err := admit.ParseNodeParameter(of); err != nil {
			t.Fatal(err)
		} else if r.IntN(3) > 0 {
			key, field, _ := strings.Cut(of, "=")
			o.NodeParameters, w.byNode[key] = append(o.NodeParameters, p), strings.TrimPrefix(field, "metadata.")
		}
	}
	if r.IntN(4) == 0 {
		w.running = run(t, o)
		return w
	}
	proven := r.IntN(4) > 0
	for _, is := range mostRights {
		if !proven || r.IntN(2) == 0 {
			continue
		}
		w.rights = append(w.rights, is)
		if is.key == nodeID {
			rule, err := admit.ParseNodeRule(is.value + "=" + is.san)
			o.Security.Nodes = append(o.Security.Nodes, must(&person{secretsWorld: w}, rule, err))
			continue
		}
		rule, err := admit.ParseParamRule(is.key + "=" + is.value + "=" + is.san)
		o.Security.Params = append(o.Security.Params, must(&person{secretsWorld: w}, rule, err))
	}
	s := runSecured(t, func(of *serve.Options) {
		files := of.Security.TLS
		if !proven {
			files.ClientCA = ""
		}
		*of = o
		of.Security.TLS = files
	})
	w.running = s.running
	w.tls = func(names ...string) *tls.Config {
		if !proven {
			return s.config(t, nil)
		}
		return s.config(t, s.ca, names...)
	}
	return w
}

// person returns a client without requests.
func (w *secretsWorld) person() *person {
	some := func(list ...string) string { return list[w.r.IntN(len(list))] }
	p := &person{secretsWorld: w, local: w.r.IntN(4) == 0, names: []string{some("spiffe://test/edge-1", "spiffe://test/edge-2", "spiffe://test/prod-1")}, seen: make(map[string]bool)}
	of := func() params.Parameters {
		is := params.Parameters{"env": some("prod", "prod", "test", "qa", ""), "zone": some("1", "2", ""), "id": some("edge-1", "")}
		maps.DeleteFunc(is, func(_, value string) bool { return value == "" })
		return is
	}
	p.node = &corev3.Node{Id: some("edge-1", "edge-2", "prod-1"), Metadata: &structpb.Struct{Fields: make(map[string]*structpb.Value)}}
	for key, value := range of() {
		p.node.Metadata.Fields[key] = structpb.NewStringValue(value)
	}
	if w.r.IntN(3) == 0 {
		if p.sets = append(p.sets, of()); w.r.IntN(2) == 0 {
			if other := of(); !maps.Equal(other, p.sets[0]) {
				p.sets = append(p.sets, other)
			}
		}
	}
	address := w.tcp
	var config *tls.Config
	if p.local {
		address = "unix:" + w.socket
	} else if w.tls != nil {
		config = w.tls(p.names...)
	}
	p.conn, p.http = dial(w.t, address, config), &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	w.t.Cleanup(p.http.CloseIdleConnections)
	return p
}

// metrics returns what the server says of itself.
func (w *secretsWorld) metrics() string {
	p := &person{secretsWorld: w, http: &http.Client{Transport: &http.Transport{}}}
	scheme := "http://"
	if w.tls != nil {
		scheme, p.http.Transport = "https://", &http.Transport{TLSClientConfig: w.tls("spiffe://test/edge-1")}
	}
	defer p.http.CloseIdleConnections()
	r, err := p.http.Get(scheme + w.web + "/metrics")
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	return string(must(p, text, err))
}

func secretsAtRandom(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 3))
	w := newSecretsWorld(t, r)
	for _, of := range askedTypes {
		w.documents = append(w.documents, w.planted(of, sentinelOf(of), ""))
	}
	w.edit()
	w.publish()
	ctx, cancel := context.WithCancel(t.Context())
	var clients []*person
	var ended []func()
	for i := range 6 {
		c := w.person()
		if clients = append(clients, c); i < 2 {
			ended = append(ended, c.follow(ctx))
		}
	}
	for range 4 {
		for range 10 {
			clients[r.IntN(len(clients))].probe(false)
		}
		w.trim()
		for range 40 {
			clients[r.IntN(len(clients))].probe(true)
		}
		w.edit()
		w.publish()
		clients[2+r.IntN(len(clients)-2)] = w.person() // the client comes while the server still has retired resources
	}
	for _, c := range clients[:2] {
		c.mu.Lock()
		c.onlyAllowed(fmt.Sprint(c, " follows"), c.seen)
		c.mu.Unlock()
	}
	status, err := csds.Ask(t.Context(), "unix:"+w.socket, nil)
	if err != nil {
		t.Error(err)
	}
	views := fmt.Sprintf("%+v %s %s", status, w.log, w.metrics())
	if found := marksIn([]byte(views)); len(found) > 0 {
		t.Errorf("the log, the metrics or the status has %v:\n%s", found, views)
	}
	cancel()
	for _, end := range ended {
		end()
	}
}
