package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/serve"
	"xdspub/serve/admit"
	"xdspub/serve/cache"
	"xdspub/xds"
	"xdspub/xds/params"
)

// Scripts of TestProtocol write constraints without spaces: {env=prod} has the value, {env} is there,
// {!env} is not; a comma joins by and, | by or.

// constraints parses constraints, without the opening brace.
func constraints(text string) params.Constraints {
	text = strings.TrimSuffix(text, "}")
	var any []params.Constraints
	for _, or := range strings.Split(text, "|") {
		var all []params.Constraints
		for _, and := range strings.Split(or, ",") {
			one, negated := strings.CutPrefix(and, "!")
			key, value, has := strings.Cut(one, "=")
			is := params.Exists(key)
			if has {
				is = params.Value(key, value)
			}
			if negated {
				is = params.Not(is)
			}
			all = append(all, is)
		}
		any = append(any, params.And(all...))
	}
	return params.Or(any...)
}

// constraintsText returns the constraints of a name as in a script.
func constraintsText(t *testing.T, name *discoveryv3.ResourceName) string {
	of, err := params.Parse(name.GetDynamicParameterConstraints())
	if err != nil {
		t.Error(err)
	}
	return "{" + strings.NewReplacer(" and ", ",", " or ", "|", "not ", "!").Replace(of.String()) + "}"
}

// variant returns a document with constraints.
func variant(t *testing.T, name, of, document string) string {
	if rest, wrapped := strings.CutPrefix(document, `{"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, `); wrapped {
		_, resource, _ := strings.Cut(rest, "resource: ")
		document = strings.TrimSuffix(resource, "}")
	}
	text, err := protojson.Marshal(constraints(of).Proto())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, resource_name: {name: '%s', dynamic_parameter_constraints: %s}, resource: %s}`, name, text, document)
}

// parameters parses dynamic parameters such as env=prod,region=eu}.
func parameters(text string) params.Parameters {
	p := make(params.Parameters)
	for _, one := range strings.Split(strings.TrimSuffix(text, "}"), ",") {
		if key, value, ok := strings.Cut(one, "="); ok {
			p[key] = value
		}
	}
	return p
}

// locator returns the resource locator of a name with dynamic parameters.
func locator(name, of string) *discoveryv3.ResourceLocator {
	return &discoveryv3.ResourceLocator{Name: name, DynamicParameters: parameters(of)}
}

// ofMetadata returns the metadata of a node as dynamic parameters.
func ofMetadata(n *corev3.Node) params.Parameters {
	p := make(params.Parameters)
	for key, value := range n.GetMetadata().GetFields() {
		p[key] = value.GetStringValue()
	}
	return p
}

// TestSecretVariants checks that a client gets a variant with a secret only if its certificate permits its
// parameters or it uses the Unix socket. Every client without a parameter gets a variant for clients without
// the parameter.
func TestSecretVariants(t *testing.T) {
	secret := func(name, of string) string {
		return variant(t, name, of, fmt.Sprintf(`{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: %s, generic_secret: {secret: {inline_string: the-secret}}}`, name))
	}
	tree := "[" + strings.Join([]string{secret("key", "env=prod"), secret("open", "!env"), secret("own", "node=edge-1"), secret("zone", "zone=1")}, ", ") + "]"
	s := runSecured(t, func(o *serve.Options) {
		env, err := admit.ParseParamRule("env=prod=spiffe://test/edge-1")
		byID, errID := admit.ParseNodeParameter("node=id")
		byMetadata, errMetadata := admit.ParseNodeParameter("zone=metadata.zone")
		if err := errors.Join(err, errID, errMetadata); err != nil {
			t.Fatal(err)
		}
		o.Security.Params = []admit.ParamRule{env}
		o.NodeParameters = []admit.NodeParameter{byID, byMetadata}
	})
	s.publish(tree)
	node := func(id string) *corev3.Node {
		return &corev3.Node{Id: id, Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"zone": structpb.NewStringValue("1")}}}
	}
	located := func(name, of string) *discoveryv3.DeltaDiscoveryRequest {
		return &discoveryv3.DeltaDiscoveryRequest{ResourceLocatorsSubscribe: []*discoveryv3.ResourceLocator{locator(name, of)}}
	}
	named := func(name string) *discoveryv3.DeltaDiscoveryRequest {
		return &discoveryv3.DeltaDiscoveryRequest{ResourceNamesSubscribe: []string{name}}
	}
	for _, c := range []struct {
		title, id string
		asks      *discoveryv3.DeltaDiscoveryRequest
		local     bool
		want      codes.Code
	}{
		{"its certificate allows env=prod", "edge-1", located("key", "env=prod"), false, codes.OK},
		{"another certificate", "edge-2", located("key", "env=prod"), false, codes.PermissionDenied},
		{"by a Unix socket", "edge-2", located("key", "env=prod"), true, codes.OK},
		{"without the parameter", "edge-2", located("open", ""), false, codes.OK},
		{"its certificate allows the node", "edge-1", named("own"), false, codes.OK},
		{"says it is another node", "edge-2", located("own", "node=edge-1"), false, codes.PermissionDenied},
		{"metadata shows nothing", "edge-1", named("zone"), false, codes.PermissionDenied},
		{"metadata by a Unix socket", "edge-1", named("zone"), true, codes.OK},
	} {
		t.Run(c.title, func(t *testing.T) {
			conn := dial(t, "unix:"+s.socket, nil)
			if !c.local {
				conn = dial(t, s.tcp, s.config(t, s.ca, "spiffe://test/"+c.id))
			}
			stream := openDelta(t, conn)
			c.asks.Node, c.asks.TypeUrl = node(c.id), xds.Secret.URL()
			if err := stream.Send(c.asks); err != nil {
				t.Fatal(err)
			}
			r, err := stream.Recv()
			if status.Code(err) != c.want || err == nil && len(r.GetResources()) != 1 {
				t.Errorf("%v, %d resources", err, len(r.GetResources()))
			}
		})
	}
	if log := s.log.String(); strings.Contains(log, "the-secret") {
		t.Error(log)
	}
}

// TestSecretHost checks that a secret in a virtual host with constraints (VHDS) goes only to its clients,
// even inside a route configuration for all clients. After an edit of only the constraints, the secret goes
// to the other clients.
func TestSecretHost(t *testing.T) {
	s := runSecured(t, func(o *serve.Options) {
		env, err := admit.ParseParamRule("env=prod=spiffe://test/edge-1")
		byMetadata, errMetadata := admit.ParseNodeParameter("zone=metadata.zone")
		if err := errors.Join(err, errMetadata); err != nil {
			t.Fatal(err)
		}
		o.Security.Params, o.NodeParameters = []admit.ParamRule{env}, []admit.NodeParameter{byMetadata}
	})
	publish := func(of string) {
		s.publish("[" + strings.Join([]string{
			`{"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: r, vhds: {config_source: {ads: {}}}}`,
			variant(t, "r/h", of, `{"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: h, domains: [h], typed_per_filter_config: {auth: {"@type": type.googleapis.com/envoy.extensions.filters.http.basic_auth.v3.BasicAuthPerRoute, users: {inline_string: the-secret}}}}`),
		}, ", ") + "]")
	}
	node := &corev3.Node{Id: "edge-1", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"zone": structpb.NewStringValue("1")}}}
	conn := dial(t, s.tcp, s.config(t, s.ca, "spiffe://test/edge-1"))
	shown := func(body fmt.Stringer, err error) string {
		return fmt.Sprintf("%v %v", status.Code(err), err == nil && strings.Contains(body.String(), "the-secret"))
	}
	ways := map[string]func(p params.Parameters) string{
		"state of the world": func(p params.Parameters) string {
			stream, q := open(t, conn), &discoveryv3.DiscoveryRequest{Node: node, TypeUrl: xds.RouteConfiguration.URL(), ResourceNames: []string{"r"}}
			if p != nil {
				q.ResourceNames, q.ResourceLocators = nil, []*discoveryv3.ResourceLocator{{Name: "r", DynamicParameters: p}}
			}
			_ = stream.Send(q)
			r, err := stream.Recv()
			return shown(r, err)
		},
		"incremental": func(p params.Parameters) string {
			stream, q := openDelta(t, conn), &discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: xds.VirtualHost.URL(), ResourceNamesSubscribe: []string{"r/h"}}
			if p != nil {
				q.ResourceNamesSubscribe, q.ResourceLocatorsSubscribe = nil, []*discoveryv3.ResourceLocator{{Name: "r/h", DynamicParameters: p}}
			}
			_ = stream.Send(q)
			r, err := stream.Recv()
			return shown(r, err)
		},
	}
	byREST := func() string {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: s.config(t, s.ca, "spiffe://test/edge-1")}}
		defer client.CloseIdleConnections()
		r, err := client.Post("https://"+s.web+"/v3/discovery:routes", "application/json", strings.NewReader(`{"node": {"id": "edge-1", "metadata": {"zone": "1"}}, "resource_names": ["r"]}`))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		return fmt.Sprint(r.StatusCode, " ", strings.Contains(string(body), "the-secret"), " ", err)
	}
	const sent, hidden, refused = "OK true", "OK false", "PermissionDenied false"
	for _, c := range []struct {
		of                  string
		byNode, prod, other string
		rest                string
	}{
		{"zone=1", refused, hidden, hidden, "403 false <nil>"},
		{"!env,!zone", hidden, hidden, sent, "200 false <nil>"},
		{"env=prod,!zone", hidden, sent, hidden, "200 false <nil>"},
		{"zone", refused, hidden, hidden, "403 false <nil>"},
		{"zone=2", hidden, hidden, hidden, "200 false <nil>"},
	} {
		publish(c.of)
		if _, _, err := s.Trim(t.Context(), time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if is := byREST(); is != c.rest {
			t.Errorf("%s by REST: %s, want %s", c.of, is, c.rest)
		}
		for way, ask := range ways {
			for of, want := range map[*params.Parameters]string{nil: c.byNode, {"env": "prod"}: c.prod, {}: c.other} {
				var p params.Parameters
				if of != nil {
					p = *of
				}
				if is := ask(p); is != want {
					t.Errorf("%s by %s with %v: %s, want %s", c.of, way, p, is, want)
				}
			}
		}
	}
}

// TestRetiredVariant checks that a retired variant stays for its clients until the trim. No other client gets
// the variant, even if the remaining variants don't distinguish these clients.
func TestRetiredVariant(t *testing.T) {
	s := run(t, serve.Options{TrimDelay: time.Hour})
	endpoints := func(name, of string) string {
		return variant(t, name, of, fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: %s}`, name))
	}
	stays := endpoints("zone", "zone=1")
	s.publish("[" + stays + ", " + endpoints("prod", "env=prod") + "]")
	conn := dial(t, "unix:"+s.socket, nil)
	ask := func(of string) int {
		stream := openDelta(t, conn)
		err := stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.Endpoints.URL(), ResourceLocatorsSubscribe: []*discoveryv3.ResourceLocator{locator("prod", of)}})
		r, errRecv := stream.Recv()
		if err := errors.Join(err, errRecv); err != nil {
			t.Fatal(err)
		}
		return len(r.GetResources())
	}
	if n := ask("env=prod,zone=1"); n != 1 {
		t.Fatalf("%d resources", n)
	}
	s.publish("[" + stays + "]")
	for of, want := range map[string]int{"env=prod,zone=1": 1, "env=test,zone=1": 0} {
		if n := ask(of); n != want {
			t.Errorf("a client with %s gets %d resources, want %d", of, n, want)
		}
	}
}

// TestRESTVariants checks that REST clients get the variants for their nodes, and wait for changes of these
// variants only.
func TestRESTVariants(t *testing.T) {
	byMetadata, err := admit.ParseNodeParameter("env=metadata.stage.env")
	if err != nil {
		t.Fatal(err)
	}
	s := run(t, serve.Options{NodeParameters: []admit.NodeParameter{byMetadata}})
	cluster := func(of string, seconds int) string {
		return variant(t, "web", of, fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, connect_timeout: %ds}`, seconds))
	}
	publish := func(prod, others int) {
		s.publish("[" + cluster("env=prod", prod) + ", " + cluster("!env=prod", others) + "]")
	}
	ask := func(env, version string) string {
		q := &discoveryv3.DiscoveryRequest{VersionInfo: version, ResourceNames: []string{"web"}, Node: &corev3.Node{Id: env, Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			"stage": structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"env": structpb.NewStringValue(env)}}),
		}}}}
		body, err := protojson.Marshal(q)
		if err != nil {
			t.Error(err)
		}
		return post(t, "http://"+s.web+"/v3/discovery:clusters", string(body))
	}
	timeout := func(answer string) (seconds, version string) {
		var is struct {
			Version   string `json:"version_info"`
			Resources []struct {
				Timeout string `json:"connect_timeout"`
			}
		}
		if err := json.Unmarshal([]byte(answer), &is); err != nil || len(is.Resources) != 1 {
			t.Fatalf("%v: %s", err, answer)
		}
		return is.Resources[0].Timeout, is.Version
	}
	publish(1, 2)
	first, version := timeout(ask("prod", ""))
	other, otherVersion := timeout(ask("test", ""))
	if first != "1s" || other != "2s" {
		t.Errorf("%s and %s", first, other)
	}
	later := make(chan string)
	go func() { later <- ask("test", otherVersion) }()
	publish(3, 2)
	if is, _ := timeout(ask("prod", version)); is != "3s" {
		t.Error(is)
	}
	publish(3, 4)
	if is, _ := timeout(<-later); is != "4s" {
		t.Error(is)
	}
	if is := post(t, "http://"+s.web+"/v3/discovery:clusters", `{"resource_locators": [{"name": "web"}]}`); !strings.Contains(is, "use gRPC for resource locators") {
		t.Error(is)
	}
}

func post(t *testing.T, url, body string) string {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return ""
	}
	r.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// TestTooManyKinds checks the limit of classes. A client of an existing class is still admitted, and so is
// any client after others have left and a resource has changed.
func TestTooManyKinds(t *testing.T) {
	s := run(t, serve.Options{})
	tree := func(timeout int) string {
		var list []string
		for i := range cache.MostClasses + 10 {
			list = append(list, variant(t, "web", fmt.Sprint("id=", i), fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, connect_timeout: %ds}`, timeout)))
		}
		return "[" + strings.Join(list, ", ") + "]"
	}
	s.publish(tree(1))
	ask := func(i int) (end context.CancelFunc, err error) {
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(dial(t, "unix:"+s.socket, nil)).DeltaAggregatedResources(ctx)
		if err == nil {
			err = stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.Cluster.URL(), ResourceLocatorsSubscribe: []*discoveryv3.ResourceLocator{locator("web", fmt.Sprint("id=", i))}})
		}
		if err == nil {
			_, err = stream.Recv()
		}
		return cancel, err
	}
	var ends []context.CancelFunc
	for i := range cache.MostClasses - 1 { // another class has the clients without parameters
		end, err := ask(i)
		if err != nil {
			t.Fatal(i, err)
		}
		ends = append(ends, end)
	}
	if _, err := ask(cache.MostClasses); status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
	if end, err := ask(7); err != nil {
		t.Error(err)
	} else {
		end()
	}
	for _, end := range ends {
		end()
	}
	for i := 2; ; i++ {
		s.publish(tree(i))
		if end, err := ask(cache.MostClasses); err == nil {
			end()
			return
		} else if status.Code(err) != codes.ResourceExhausted {
			t.Fatal(err)
		}
	}
}
