package serve_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	rpccode "google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/status"

	"xdspub/serve"
	"xdspub/serve/cache"
	"xdspub/xds"
	"xdspub/xds/params"
	"xdspub/xds/xdstp"
)

// TestProtocol plays the scripts of testdata/protocol: what clients ask, and what they must be
// told. Each line is a step:
//
//	snapshot c/blue e/blue@2     publish clusters, endpoint assignments, endpoints of LEDS (n/), listeners, route
//	                             configurations, virtual hosts; @N is a content, of p/ the
//	                             port of a listener, ~1s a TTL, {env=prod} the constraints of
//	                             a variant
//	edit -c/blue e/blue@2        publish the same without and with resources, as an edit
//	trim                         remove what is retired
//	open a ads                   a new stream of client a: ads, delta, or a type for its service
//	open a ads ttl               and the client counts TTLs
//	open a ads {env=prod}        and this is in the metadata of its node
//	a> CDS blue green            a asks for names by state of the world
//	a> CDS +blue -green blue@1   a asks incrementally: subscribe, unsubscribe, has
//	a> CDS blue{env=prod}        a asks by locators, incrementally with + and -; {} has no parameters
//	a> CDS ack | nack TEXT       a answers the last response of the type; an ACK may have names
//	a> CDS stale                 a repeats its answer to the response before the last one,
//	                             perhaps with names
//	a> CDS foreign blue          a asks with a nonce that it has not from this stream
//	again a ads                  a new stream of client a, that names the versions of before
//	a< CDS blue@2 -green         a is told
//	a< CDS blue~1s green~        a is told a resource with a TTL, and a wrapper without one
//	a< CDS blue@2{env=prod}      a is told a variant, and its constraints; -blue{env=prod} that it is gone
//	a< CDS blue !gone NOT_FOUND  a is told an error, by its resource and its code
//	a quiet                      a is told nothing
func TestProtocol(t *testing.T) {
	files, err := filepath.Glob("testdata/protocol/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := newPlay(t)
			for i, line := range strings.Split(string(text), "\n") {
				if line, _, _ = strings.Cut(line, "#"); strings.TrimSpace(line) != "" {
					p.at = fmt.Sprintf("%s:%d: %s", file, i+1, line)
					p.step(strings.Fields(line))
				}
			}
		})
	}
}

// play is a server and its clients.
type play struct {
	t        *testing.T
	at       string
	cache    *cache.Cache
	snapshot *xds.Snapshot
	dial     *grpc.ClientConn
	clients  map[string]*client
}

func newPlay(t *testing.T) *play {
	p := &play{t: t, cache: cache.New(cache.Options{Parameters: ofMetadata}), clients: make(map[string]*client)}
	socket := socketPath(t)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	serve.Register(g, p.cache)
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	if p.dial, err = grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.dial.Close() })
	return p
}

func (p *play) failf(format string, args ...any) {
	p.t.Helper()
	p.t.Fatalf("%s: %s", p.at, fmt.Sprintf(format, args...))
}

func (p *play) step(words []string) {
	p.t.Helper()
	switch first := words[0]; {
	case first == "snapshot":
		p.publish(snapshot(p.t, words[1:]))
	case first == "edit":
		var change xds.Change
		for _, word := range words[1:] {
			r := parse(p.t, document(p.t, strings.TrimPrefix(word, "-"))).All()[0]
			if strings.HasPrefix(word, "-") {
				change.Removed = append(change.Removed, p.snapshot.Named(r.Key)...)
			} else {
				change.Added = append(change.Added, r)
			}
		}
		p.publish(p.snapshot.Apply(change))
	case first == "trim":
		if _, _, err := p.cache.Trim(p.t.Context(), time.Now()); err != nil {
			p.failf("%v", err)
		}
	case first == "open":
		p.clients[words[1]] = p.open(words[1], words[2])
		if _, of, ok := strings.Cut(words[len(words)-1], "{"); ok {
			p.clients[words[1]].parameters = parameters(of)
		} else if len(words) > 3 {
			p.clients[words[1]].features = []string{"xds.config.supports-resource-ttl", "xds.config.resource-in-sotw"}
		}
	case first == "again":
		was := p.clients[words[1]]
		c := p.open(words[1], words[2])
		c.parameters = was.parameters
		for _, t := range xds.Types {
			c.version[t.URL()] = was.version["last "+t.URL()]
		}
		p.clients[words[1]] = c
	case strings.HasSuffix(first, ">"):
		p.client(first).ask(typeOf(p, words[1]), words[2:])
	case strings.HasSuffix(first, "<"):
		if is, want := p.client(first).next(), strings.Join(words[1:], " "); is != want {
			p.failf("is told %s", is)
		}
	case words[1] == "quiet":
		p.client(first).quiet()
	default:
		p.failf("no such step")
	}
}

func (p *play) publish(s *xds.Snapshot) {
	p.t.Helper()
	p.snapshot = s
	if err := p.cache.Publish(p.t.Context(), s); err != nil {
		p.failf("%v", err)
	}
}

func (p *play) client(word string) *client {
	c := p.clients[strings.TrimRight(word, "<>")]
	if c == nil {
		p.failf("no such client")
	}
	return c
}

func typeOf(p *play, api string) *xds.Type {
	for _, t := range xds.Types {
		if t.API == api {
			return t
		}
	}
	p.failf("no type %s", api)
	return nil
}

// documents are the resources that a script names, by the letter of their type; %[1]s is the
// name, %[2]s the content.
var documents = map[string]string{
	"c": `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: '%[1]s', type: EDS, connect_timeout: %[2]ss, eds_cluster_config: {eds_config: {ads: {}, resource_api_version: V3}}}`,
	"s": `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: '%[1]s', type: STATIC, connect_timeout: %[2]ss}`,
	"e": `{"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: '%[1]s', policy: {overprovisioning_factor: %[2]s}}`,
	"n": `{"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, name: '%[1]s', resource: {"@type": type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint, load_balancing_weight: %[2]s}}`,
	"r": `{"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: '%[1]s', max_direct_response_body_size_bytes: %[2]s}`,
	"v": `{"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: '%[1]s', max_direct_response_body_size_bytes: %[2]s, vhds: {config_source: {ads: {}}}}`,
	"h": `{"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, name: '%[1]s', resource: {"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: h, domains: [%[3]s.example], retry_policy: {num_retries: %[2]s}}}`,
	"l": `{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: '%[1]s', tcp_backlog_size: %[2]s, filter_chains: [{filters: [{name: hcm, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s, rds: {route_config_name: '%[1]s', config_source: {ads: {}}}}}]}]}`,
	"p": `{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: '%[1]s', address: {socket_address: {address: 127.0.0.1, port_value: %[2]s}}, filter_chains: [{filters: [{name: hcm, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s, rds: {route_config_name: '%[1]s', config_source: {ads: {}}}}}]}]}`,
	"z": `{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: '%[1]s', tcp_backlog_size: %[2]s, filter_chains: [{filters: [{name: hcm, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s, scoped_routes: {name: s, scope_key_builder: {fragments: [{header_value_extractor: {name: a, index: 0}}]}, rds_config_source: {ads: {}}, scoped_rds: {scoped_rds_config_source: {ads: {}}}}}}]}]}`,
	"o": `{"@type": type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration, name: '%[1]s', route_configuration_name: in, key: {fragments: [{string_key: a}]}}%.0[2]s`,
	"k": `{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: '%[1]s', generic_secret: {secret: {inline_string: "%[2]s"}}}`,
	"x": `{"@type": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig, name: '%[1]s', typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}%.0[2]s`,
	"f": `{"@type": type.googleapis.com/envoy.service.runtime.v3.Runtime, name: '%[1]s', layer: {a: %[2]s}}`,
}

// snapshot parses a Snapshot from words such as c/blue@2, and adds a layer for quiet.
func snapshot(t *testing.T, words []string) *xds.Snapshot {
	t.Helper()
	var text []string
	for _, word := range append(slices.Clone(words), "f/quiet@1") {
		text = append(text, document(t, word))
	}
	return parse(t, strings.Join(text, "\n---\n"))
}

// document returns the text of the resource that a word of a script names.
func document(t *testing.T, word string) string {
	t.Helper()
	word, of, varies := strings.Cut(word, "{")
	word, ttl, isMortal := strings.Cut(word, "~")
	letter, name, _ := strings.Cut(word, "/")
	name, content, ok := strings.Cut(name, "@")
	if !ok {
		content = "1"
	}
	_, last, _ := strings.Cut(name, "/")
	document := fmt.Sprintf(documents[letter]+"%.0[3]s", name, content, last)
	if isMortal {
		document = mortal(ttl, document)
	}
	if varies {
		document = variant(t, name, of, document)
	}
	return strings.TrimPrefix(strings.TrimSpace(document), "- ")
}

// texts caches the results of nameOf by the bytes of the resources.
var texts sync.Map

// nameOf returns the name of a resource, with @ and its content if the content is not 1.
func nameOf(t *testing.T, any *anypb.Any) string {
	key := any.GetTypeUrl() + string(any.GetValue())
	text, ok := texts.Load(key)
	if !ok {
		text, _ = texts.LoadOrStore(key, readName(t, any))
	}
	return text.(string)
}

func readName(t *testing.T, any *anypb.Any) string {
	m, err := any.UnmarshalNew()
	if err != nil {
		t.Fatal(err)
	}
	var name string
	var content int64 = 1
	switch m := m.(type) {
	case *clusterv3.Cluster:
		name, content = m.GetName(), m.GetConnectTimeout().GetSeconds()
	case *endpointv3.ClusterLoadAssignment:
		name, content = m.GetClusterName(), int64(m.GetPolicy().GetOverprovisioningFactor().GetValue())
	case *endpointv3.LbEndpoint: // only the wrapper has the name
		content = int64(m.GetLoadBalancingWeight().GetValue())
	case *routev3.RouteConfiguration:
		name, content = m.GetName(), int64(m.GetMaxDirectResponseBodySizeBytes().GetValue())
	case *listenerv3.Listener:
		name, content = m.GetName(), int64(m.GetTcpBacklogSize().GetValue())
		if port := m.GetAddress().GetSocketAddress().GetPortValue(); port != 0 {
			content = int64(port)
		}
	case *routev3.VirtualHost:
		name, content = m.GetName(), int64(m.GetRetryPolicy().GetNumRetries().GetValue())
	case *runtimev3.Runtime:
		name = m.GetName()
	case *routev3.ScopedRouteConfiguration:
		name = m.GetName()
	case *tlsv3.Secret:
		name = m.GetName()
	case *corev3.TypedExtensionConfig:
		name = m.GetName()
	case *discoveryv3.Resource:
		return wrapperText(t, m)
	default:
		t.Fatalf("%T", m)
	}
	return numbered(name, content)
}

// wrapperText returns the text of a wrapper as in a script.
func wrapperText(t *testing.T, r *discoveryv3.Resource) (text string) {
	if r.GetResource() == nil {
		return r.GetName() + "~"
	}
	_, content, hasContent := strings.Cut(nameOf(t, r.GetResource()), "@")
	text = r.GetName() // the name in a virtual host is another
	if r.GetResourceName() != nil {
		if text != "" {
			t.Error("a wrapper has two names")
		}
		defer func() { text += constraintsText(t, r.GetResourceName()) }()
		text = r.GetResourceName().GetName()
	}
	if hasContent {
		text += "@" + content
	}
	if r.GetTtl() != nil {
		text += fmt.Sprintf("~%gs", r.GetTtl().AsDuration().Seconds())
	}
	return text
}

// errorTexts returns the errors of a response as in a script.
func errorTexts(t *testing.T, response interface {
	GetResourceErrors() []*discoveryv3.ResourceError
}) (list []string) {
	for _, e := range response.GetResourceErrors() {
		if e.GetErrorDetail().GetMessage() == "" {
			t.Errorf("the error of %s has no message", e.GetResourceName().GetName())
		}
		code := rpccode.Code(e.GetErrorDetail().GetCode())
		if e.GetResourceName().GetDynamicParameterConstraints() != nil {
			t.Errorf("the error of %s has constraints", e.GetResourceName().GetName())
		}
		list = append(list, "!"+e.GetResourceName().GetName()+" "+code.String())
	}
	return list
}

func numbered(name string, content int64) string {
	if content == 1 {
		return name
	}
	return fmt.Sprintf("%s@%d", name, content)
}

// client is one stream.
type client struct {
	*play
	delta   bool
	only    *xds.Type
	send    func(proto.Message) error
	told    chan proto.Message // closed when the stream ends
	nonce   map[string][]string
	version map[string]string
	names   map[string][]string
	asked   bool
	// features are the features of the client's node, parameters its metadata.
	features   []string
	parameters params.Parameters
}

// patience is how long a step waits for an event that must come. patience only bounds a failing test.
const patience = 2 * time.Minute

func (p *play) open(name, kind string) *client {
	c := &client{play: p, told: make(chan proto.Message, 100), nonce: make(map[string][]string), version: make(map[string]string), names: make(map[string][]string)}
	ctx, cancel := context.WithCancel(p.t.Context())
	p.t.Cleanup(cancel)
	kind, c.delta = strings.CutPrefix(kind, "delta")
	kind = strings.TrimPrefix(kind, "-")
	var method string
	switch {
	case kind == "" || kind == "ads":
		method = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
		if c.delta {
			method = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
		}
	default:
		c.only = typeOf(p, kind)
		method = services[c.only]
		if c.delta {
			method = strings.Replace(method, "/Stream", "/Delta", 1)
		}
	}
	stream, err := p.dial.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		p.failf("%v", err)
	}
	c.send = func(m proto.Message) error { return stream.SendMsg(m) }
	go func() {
		defer close(c.told)
		for {
			var m proto.Message = &discoveryv3.DiscoveryResponse{}
			if c.delta {
				m = &discoveryv3.DeltaDiscoveryResponse{}
			}
			if stream.RecvMsg(m) != nil {
				return
			}
			c.told <- m
		}
	}()
	return c
}

// services are the streams of the singleton services.
var services = map[*xds.Type]string{
	xds.Cluster:            "/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters",
	xds.Endpoints:          "/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints",
	xds.LocalityEndpoints:  "/envoy.service.endpoint.v3.LocalityEndpointDiscoveryService/StreamLocalityEndpoints", // Delta only
	xds.Listener:           "/envoy.service.listener.v3.ListenerDiscoveryService/StreamListeners",
	xds.RouteConfiguration: "/envoy.service.route.v3.RouteDiscoveryService/StreamRoutes",
	xds.ScopedRoutes:       "/envoy.service.route.v3.ScopedRoutesDiscoveryService/StreamScopedRoutes",
	xds.VirtualHost:        "/envoy.service.route.v3.VirtualHostDiscoveryService/StreamVirtualHosts", // Delta only
	xds.Secret:             "/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets",
	xds.Runtime:            "/envoy.service.runtime.v3.RuntimeDiscoveryService/StreamRuntime",
	xds.ExtensionConfig:    "/envoy.service.extension.v3.ExtensionConfigDiscoveryService/StreamExtensionConfigs",
}

// ask sends a request.
func (c *client) ask(t *xds.Type, words []string) {
	c.t.Helper()
	url := t.URL()
	nonces := c.nonce[url]
	nonce := ""
	if len(nonces) > 0 {
		nonce = nonces[len(nonces)-1]
	}
	var refused *status.Status
	answers := len(words) > 0 && slices.Contains([]string{"ack", "nack", "stale", "foreign"}, words[0])
	if answers {
		switch words[0] {
		case "ack":
			words = words[1:]
		case "nack":
			refused = &status.Status{Code: 3, Message: strings.Join(words[1:], " ")}
			words = nil
		case "stale":
			nonce = nonces[len(nonces)-2]
			words = words[1:]
		case "foreign":
			nonce = "99"
			words = words[1:]
		}
	}
	var node *corev3.Node
	if !c.asked {
		node, c.asked = &corev3.Node{Id: "test", ClientFeatures: c.features, Metadata: &structpb.Struct{Fields: make(map[string]*structpb.Value)}}, true
		for key, value := range c.parameters {
			node.Metadata.Fields[key] = structpb.NewStringValue(value)
		}
	}
	var request proto.Message
	if c.delta {
		q := &discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: url, ErrorDetail: refused, InitialResourceVersions: make(map[string]string)}
		if answers {
			q.ResponseNonce = nonce
		}
		for _, word := range words {
			switch name, of, located := strings.Cut(word, "{"); {
			case located && word[0] == '+':
				q.ResourceLocatorsSubscribe = append(q.ResourceLocatorsSubscribe, locator(name[1:], of))
			case located:
				q.ResourceLocatorsUnsubscribe = append(q.ResourceLocatorsUnsubscribe, locator(name[1:], of))
			case strings.HasPrefix(word, "+"):
				q.ResourceNamesSubscribe = append(q.ResourceNamesSubscribe, word[1:])
			case strings.HasPrefix(word, "-"):
				q.ResourceNamesUnsubscribe = append(q.ResourceNamesUnsubscribe, word[1:])
			default:
				letter := map[*xds.Type]string{xds.Cluster: "c", xds.Endpoints: "e", xds.LocalityEndpoints: "n", xds.Listener: "l", xds.ScopedRoutes: "o"}[t]
				name, _, _ := strings.Cut(word, "@")
				q.InitialResourceVersions[name] = snapshot(c.t, []string{letter + "/" + word}).Lookup(t, xdstp.Canonical(name)).Version()
			}
		}
		request = q
	} else {
		if !answers || len(words) > 0 {
			c.names[url] = words
		}
		if refused == nil && len(nonces) > 0 {
			c.version[url] = c.version["last "+url]
		}
		q := &discoveryv3.DiscoveryRequest{Node: node, TypeUrl: url, ErrorDetail: refused, ResponseNonce: nonce, VersionInfo: c.version[url]}
		for _, word := range c.names[url] {
			if name, of, located := strings.Cut(word, "{"); located {
				q.ResourceLocators = append(q.ResourceLocators, locator(name, of))
			} else {
				q.ResourceNames = append(q.ResourceNames, word)
			}
		}
		request = q
	}
	if err := c.send(request); err != nil {
		c.failf("%v", err)
	}
}

// next waits for a response, and returns the response as in a script.
func (c *client) next() string {
	c.t.Helper()
	select {
	case m, ok := <-c.told:
		if !ok {
			return "the end"
		}
		return c.text(m)
	case <-time.After(patience):
		c.failf("is told nothing")
		return ""
	}
}

func (c *client) text(m proto.Message) string {
	var url, nonce string
	var names []string
	switch m := m.(type) {
	case *discoveryv3.DiscoveryResponse:
		url, nonce = m.GetTypeUrl(), m.GetNonce()
		if m.GetVersionInfo() == "" {
			c.failf("there is no version")
		}
		c.version["last "+url] = m.GetVersionInfo()
		for _, r := range m.GetResources() {
			names = append(names, nameOf(c.t, r))
		}
		names = append(names, errorTexts(c.t, m)...)
	case *discoveryv3.DeltaDiscoveryResponse:
		url, nonce = m.GetTypeUrl(), m.GetNonce()
		for _, r := range m.GetResources() {
			names = append(names, wrapperText(c.t, r))
		}
		for _, name := range m.GetRemovedResources() {
			names = append(names, "-"+name)
		}
		for _, r := range m.GetRemovedResourceNames() {
			names = append(names, "-"+r.GetName()+constraintsText(c.t, r))
		}
		names = append(names, errorTexts(c.t, m)...)
	}
	for other, nonces := range c.nonce {
		if nonce == "" || slices.Contains(nonces, nonce) {
			c.failf("the nonce %q is that of an earlier response (%s)", nonce, other)
		}
	}
	c.nonce[url] = append(c.nonce[url], nonce)
	if once := slices.Compact(slices.Sorted(slices.Values(names))); len(once) != len(names) {
		c.failf("a name is there twice: %q", names)
	}
	return strings.Join(append([]string{xds.TypeOfURL(url).API}, names...), " ")
}

// quiet fails the test if a response is waiting for the client: quiet subscribes to a layer, whose response
// must come first.
func (c *client) quiet() {
	c.t.Helper()
	if c.only != nil {
		c.failf("only an aggregated stream can be quiet")
	}
	words := []string{"quiet"}
	if c.delta {
		words = []string{"+quiet"}
	} else if len(c.nonce[xds.Runtime.URL()]) > 0 {
		c.ask(xds.Runtime, nil)
	}
	c.ask(xds.Runtime, words)
	if is := c.next(); is != "RTDS quiet" {
		c.failf("is told %s", is)
	}
	c.ask(xds.Runtime, []string{"ack"})
}

func anyOf(t *testing.T, r *xds.Resource) *anypb.Any {
	any, err := anypb.New(r.Message())
	if err != nil {
		t.Fatal(err)
	}
	return any
}

// any2name returns the name of a resource, without its content.
func any2name(t *testing.T, any *anypb.Any) string {
	name, _, _ := strings.Cut(nameOf(t, any), "@")
	name, _, _ = strings.Cut(name, "~")
	return name
}

// TestTypeURL sends requests without a type, and requests of a type that the service lacks.
func TestTypeURL(t *testing.T) {
	p := newPlay(t)
	p.step([]string{"snapshot", "c/blue"})
	for _, delta := range []string{"", "delta-"} {
		request := func(url string) proto.Message {
			if delta != "" {
				return &discoveryv3.DeltaDiscoveryRequest{TypeUrl: url}
			}
			return &discoveryv3.DiscoveryRequest{TypeUrl: url}
		}
		for _, test := range []struct{ kind, url, want string }{
			{"ads", "", "the end"},
			{"CDS", "", "CDS blue"},
			{"CDS", xds.Cluster.URL(), "CDS blue"},
			{"CDS", xds.Listener.URL(), "the end"},
		} {
			c := p.open("a", delta+test.kind)
			if err := c.send(request(test.url)); err != nil {
				t.Fatal(err)
			}
			if is := c.next(); is != test.want {
				t.Errorf("%s%s is asked for %q: %s", delta, test.kind, test.url, is)
			}
		}
	}
}

// TestVersions compares the versions in the responses of two servers with the same resources.
func TestVersions(t *testing.T) {
	told := func(snapshot ...string) map[string]string {
		p := newPlay(t)
		p.step(append([]string{"snapshot"}, snapshot...))
		versions := make(map[string]string)
		for _, name := range []string{"a", "b"} {
			c := p.open(name, "ads")
			for _, typ := range []*xds.Type{xds.Cluster, xds.Listener} {
				c.ask(typ, nil)
				c.next()
				is := c.version["last "+typ.URL()]
				if was, ok := versions[typ.API]; ok && was != is {
					t.Errorf("%s has the versions %s and %s", typ.API, was, is)
				}
				versions[typ.API] = is
			}
		}
		return versions
	}
	first, same, other := told("c/blue", "l/in"), told("c/blue", "l/in"), told("c/blue@2", "l/in")
	if !maps.Equal(first, same) {
		t.Errorf("the same resources have the versions %v and %v", first, same)
	}
	if first["CDS"] == other["CDS"] || first["LDS"] != other["LDS"] || first["CDS"] == first["LDS"] {
		t.Errorf("one cluster is another one: the versions are %v and %v", first, other)
	}
}

// The details of errors.
const (
	notThere  = "the server has no resource of this name"
	noVariant = "the server has this resource, but no variant for the dynamic parameters of this client"
)

// TestErrorDetails checks what the details of errors reveal about the variants for other clients.
func TestErrorDetails(t *testing.T) {
	for _, kind := range []string{"ads", "delta"} {
		p := newPlay(t)
		p.step([]string{"snapshot", "e/web{env=prod}", "k/web{env=prod}"})
		for _, test := range []struct {
			of         *xds.Type
			name, want string
		}{
			{xds.Endpoints, "web", noVariant},
			{xds.Endpoints, "gone", notThere},
			{xds.Secret, "web", notThere},
			{xds.Secret, "gone", notThere},
		} {
			words := []string{test.name}
			if kind == "delta" {
				words[0] = "+" + words[0]
			}
			c := p.open("a", kind)
			c.parameters = parameters("env=test}")
			c.ask(test.of, words)
			m := <-c.told
			list := m.(interface {
				GetResourceErrors() []*discoveryv3.ResourceError
			}).GetResourceErrors()
			if len(list) != 1 || list[0].GetErrorDetail().GetMessage() != test.want {
				t.Errorf("%s: the errors of %s %s are %v, want one with %q", kind, test.of.API, test.name, list, test.want)
			}
		}
	}
}
