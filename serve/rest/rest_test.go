package rest_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"xdspub/event"
	"xdspub/serve/admit"
	"xdspub/serve/cache"
	"xdspub/serve/memory"
	"xdspub/serve/rest"
	"xdspub/source/load"
	"xdspub/tools/envoytest"
	"xdspub/xds"
)

// server is a Handler with its Cache and its log.
type server struct {
	*testing.T
	cache   *cache.Cache
	handler *rest.Handler
	log     strings.Builder
}

func start(t *testing.T) *server {
	s := &server{T: t}
	s.cache = cache.New(cache.Options{Cluster: "xds_cluster", Log: event.New(slog.NewTextHandler(&s.log, nil))})
	s.handler = rest.New(s.cache, rest.Options{})
	return s
}

// documents are the resources by a letter for their type; %[1]s is the name, %[2]s the content.
var documents = map[string]string{
	"c": `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: %[1]s, type: STATIC, connect_timeout: %[2]ss}`,
	"e": `{"@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: %[1]s, policy: {overprovisioning_factor: %[2]s}}`,
	"k": `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: %[1]s, type: STATIC, connect_timeout: %[2]ss, transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {tls_certificates: [{certificate_chain: {inline_string: a}, private_key: {inline_string: b}}]}}}}`,
	"l": `{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: %[1]s, per_connection_buffer_limit_bytes: %[2]s}`,
	"r": `{"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: %[1]s, max_direct_response_body_size_bytes: %[2]s}`,
	"t": `{"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, name: %[1]s, ttl: %[2]ss, resource: {"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: %[1]s}}`,
	"s": `{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: %[1]s, generic_secret: {secret: {inline_string: "%[2]s"}}}`,
	"x": `{"@type": type.googleapis.com/envoy.service.runtime.v3.Runtime, name: %[1]s, layer: {a: %[2]s}}`,
	"f": `{"@type": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig, name: %[1]s, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer, max_request_bytes: %[2]s}}`,
	"o": `{"@type": type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration, name: %[1]s, route_configuration_name: r, key: {fragments: [{string_key: "%[2]s"}]}}`,
}

// publish publishes the resources of words such as c/blue@2.
func (s *server) publish(words ...string) {
	s.Helper()
	if err := s.cache.Publish(s.Context(), s.snapshot(words...)); err != nil {
		s.Fatal(err)
	}
}

func (s *server) snapshot(words ...string) *xds.Snapshot {
	s.Helper()
	var text strings.Builder
	for _, word := range words {
		letter, rest, _ := strings.Cut(word, "/")
		name, content, _ := strings.Cut(rest, "@")
		if content == "" {
			content = "1"
		}
		fmt.Fprintf(&text, "- "+documents[letter]+"\n", name, content)
	}
	result := load.Parse(load.Input{Name: "tree.yaml", Format: "yaml", Data: []byte(text.String())})
	if len(words) > 0 && result.Diagnostics.HasErrors() {
		s.Fatal(result.Diagnostics)
	}
	return result.Snapshot()
}

// answer is the answer that a client gets, and how long the client waited.
type answer struct {
	*httptest.ResponseRecorder
	after time.Duration
}

// request returns a discovery request. patience is the timeout that an Envoy sends with its request; 0 for
// none.
func request(ctx context.Context, path, body string, patience time.Duration) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v3/discovery:"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if patience != 0 {
		r.Header.Set("X-Envoy-Expected-Rq-Timeout-Ms", fmt.Sprint(patience.Milliseconds()))
	}
	return r
}

func (s *server) do(r *http.Request) answer {
	w, began := httptest.NewRecorder(), time.Now()
	s.handler.ServeHTTP(w, r)
	return answer{w, time.Since(began)}
}

// ask sends a request to a path, and returns the names of the resources and the version in the response, or
// the status.
func (s *server) ask(path, body string, patience time.Duration) (told, version string) {
	s.Helper()
	a := s.do(request(s.Context(), path, body, patience))
	if a.Code != http.StatusOK {
		return fmt.Sprint(a.Code), ""
	}
	var r discoveryv3.DiscoveryResponse
	if err := protojson.Unmarshal(a.Body.Bytes(), &r); err != nil {
		s.Fatal(err, a.Body)
	}
	var names []string
	for _, any := range r.GetResources() {
		m, err := any.UnmarshalNew()
		if err != nil {
			s.Fatal(err)
		}
		resource, err := xds.NewResource(m, "", nil)
		if err != nil {
			s.Fatal(err)
		}
		names = append(names, resource.Name)
	}
	return strings.Join(names, " "), r.GetVersionInfo()
}

// TestTypes checks the path of each type. An empty list subscribes to all resources of some types and to none
// of others; * subscribes to all.
func TestTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.publish("c/a", "c/b", "e/a", "e/b", "l/a", "l/b", "r/a", "r/b", "s/a", "s/b", "x/a", "x/b", "f/a", "f/b", "o/a@1", "o/b@2")
		for path, hasAll := range map[string]bool{
			"clusters": true, "endpoints": false, "listeners": true, "routes": false, "scoped-routes": true,
			"secrets": false, "runtime": false, "extension_configs": false,
		} {
			all := "304"
			if hasAll {
				all = "a b"
			}
			for body, want := range map[string]string{
				`{}`:                             all,
				`{"resource_names": []}`:         all,
				`{"resource_names": null}`:       all,
				`{"resource_names": ["*"]}`:      "a b",
				`{"resource_names": ["*", "b"]}`: "a b",
				`{"resource_names": ["b"]}`:      "b",
				`{"resourceNames": ["b", "b"]}`:  "b",
				`{"resource_names": ["c", "a"]}`: "a",
				`{"resource_names": ["c"]}`:      "304",
			} {
				if told, _ := s.ask(path, body, 0); told != want {
					t.Errorf("%s %s: %s, want %s", path, body, told, want)
				}
			}
		}
	})
}

// TestVersion checks that the version covers only the requested resources. A response reports removed
// clusters, and never removed endpoints.
func TestVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.publish("c/a", "c/b", "e/a", "e/b")
		ask := func(path, names, version, want string) string {
			t.Helper()
			told, is := s.ask(path, `{"resource_names": [`+names+`], "version_info": "`+version+`"}`, 0)
			if told != want {
				t.Errorf("%s %s: %s, want %s", path, names, told, want)
			}
			return is
		}
		all, one, endpoints := ask("clusters", ``, "", "a b"), ask("clusters", `"a"`, "", "a"), ask("endpoints", `"a"`, "", "a")
		ask("clusters", ``, all, "304")
		ask("clusters", `"a"`, one, "304")
		ask("endpoints", `"a"`, endpoints, "304")
		s.publish("c/a", "c/b@2", "e/a", "e/b@2")
		ask("clusters", ``, all, "a b")
		ask("clusters", `"a"`, one, "304")
		ask("endpoints", `"a"`, endpoints, "304")
		s.publish()
		if _, _, err := s.cache.Trim(t.Context(), time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		ask("clusters", ``, all, "")
		ask("clusters", ``, "", "")
		ask("clusters", `"a"`, one, "")
		ask("clusters", `"a"`, "", "304")
		ask("endpoints", `"a"`, endpoints, "304")
	})
}

// TestStatus checks the status and the text of the answer to an invalid request.
func TestStatus(t *testing.T) {
	s := start(t)
	valid := func() *http.Request { return request(t.Context(), "clusters", "{}", time.Millisecond) }
	if a := s.do(valid()); a.Code != http.StatusServiceUnavailable || a.Header().Get("Retry-After") == "" {
		t.Error("before the first snapshot:", a.Code, a.Header())
	}
	s.publish("c/a")
	with := func(change func(*http.Request)) *http.Request {
		r := valid()
		change(r)
		return r
	}
	body := func(text string) *http.Request { return request(t.Context(), "clusters", text, 0) }
	for name, c := range map[string]struct {
		request *http.Request
		want    int
	}{
		"valid":              {valid(), 200},
		"charset":            {with(func(r *http.Request) { r.Header.Set("Content-Type", "Application/JSON; charset=utf-8") }), 200},
		"query":              {with(func(r *http.Request) { r.URL.RawQuery = "a=b" }), 200},
		"path":               {with(func(r *http.Request) { r.URL.Path = "/v3/discovery:cluster" }), 404},
		"version 2":          {with(func(r *http.Request) { r.URL.Path = "/v2/discovery:clusters" }), 404},
		"virtual hosts":      {with(func(r *http.Request) { r.URL.Path = "/v3/discovery:virtual-hosts" }), 404},
		"GET":                {with(func(r *http.Request) { r.Method = http.MethodGet }), 405},
		"PUT":                {with(func(r *http.Request) { r.Method = http.MethodPut }), 405},
		"form":               {with(func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }), 415},
		"no media type":      {with(func(r *http.Request) { r.Header.Del("Content-Type") }), 415},
		"gzip":               {with(func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }), 415},
		"another type":       {body(`{"type_url": "type.googleapis.com/envoy.config.listener.v3.Listener"}`), 400},
		"its type":           {body(`{"typeUrl": "type.googleapis.com/envoy.config.cluster.v3.Cluster"}`), 200},
		"newer field":        {body(`{"of_tomorrow": [{"a": {}}], "node": {"of_tomorrow": 1}}`), 200},
		"empty":              {body(``), 400},
		"list":               {body(`[]`), 400},
		"string":             {body(`"a"`), 400},
		"cut":                {body(`{"node": {`), 400},
		"more":               {body(`{}{}`), 400},
		"names":              {body(`{"resource_names": "a"}`), 400},
		"a name":             {body(`{"resource_names": [1]}`), 400},
		"version":            {body(`{"version_info": 1}`), 400},
		"not UTF-8":          {body("{\"version_info\": \"\xff\"}"), 400},
		"deep":               {body(strings.Repeat(`{"a":`, 1_000_000)), 400},
		"deep list":          {body(`{"a":` + strings.Repeat(`[`, 1_000_000)), 400},
		"a name of 1 MB":     {body(`{"resource_names": ["` + strings.Repeat("a", 1<<20) + `"], "version_info": "v"}`), 200},
		"100,000 names":      {body(`{"resource_names": ["a"` + strings.Repeat(`,"b"`, 100_000) + `]}`), 200},
		"large":              {body(`{"version_info": "` + strings.Repeat("a", 5<<20) + `"}`), 413},
		"without an end":     {with(func(r *http.Request) { r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"a":"`), endless{})) }), 413},
		"ends with an error": {with(func(r *http.Request) { r.Body = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)) }), 400},
	} {
		a := s.do(c.request)
		if a.Code != c.want {
			t.Errorf("%s: %d %.200s, want %d", name, a.Code, a.Body, c.want)
		}
		if a.Code == http.StatusMethodNotAllowed && a.Header().Get("Allow") != "POST" {
			t.Errorf("%s: %v", name, a.Header())
		}
		if a.Code != http.StatusOK && a.Body.Len() > 2000 {
			t.Errorf("%s: a message of %d bytes", name, a.Body.Len())
		}
	}
}

// endless is a body that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

// TestWait checks that a request with the current version waits for a change of the requested resources, at
// most until the timeout of its client.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.publish("c/a", "e/a", "e/b")
		_, version := s.ask("endpoints", `{"resource_names": ["a"]}`, 0)
		current := `{"resource_names": ["a"], "version_info": "` + version + `"}`
		for patience, want := range map[time.Duration]time.Duration{
			0: 30 * time.Second, time.Second: 900 * time.Millisecond, 10 * time.Second: 9 * time.Second, time.Hour: 30 * time.Second,
		} {
			if a := s.do(request(t.Context(), "endpoints", current, patience)); a.Code != http.StatusNotModified || a.after != want || a.Body.Len() > 0 {
				t.Errorf("patience %v: %d after %v, want %v", patience, a.Code, a.after, want)
			}
		}
		begin := func(ctx context.Context) <-chan answer {
			told := make(chan answer, 1)
			go func() { told <- s.do(request(ctx, "endpoints", current, 0)) }()
			synctest.Wait()
			return told
		}
		told := begin(t.Context())
		time.Sleep(time.Second)
		s.publish("c/a@2", "e/a", "e/b@2")
		synctest.Wait()
		select {
		case a := <-told:
			t.Fatal("a change of another resource is told", a.Code, a.Body)
		default:
		}
		time.Sleep(time.Second)
		s.publish("c/a@2", "e/a@2", "e/b@2")
		if a := <-told; a.Code != http.StatusOK || a.after != 2*time.Second || !strings.Contains(a.Body.String(), `"overprovisioning_factor":2`) {
			t.Error(a.Code, a.after, a.Body)
		}
		s.publish("e/a@1")

		ctx, cancel := context.WithCancel(t.Context())
		told = begin(ctx)
		cancel()
		if a := <-told; a.after != 0 {
			t.Error("a client that is gone waits", a.after)
		}
		told = begin(t.Context())
		s.handler.EndWaits()
		if a := <-told; a.Code != http.StatusNotModified || a.after != 0 {
			t.Error("at the end of waits:", a.Code, a.after)
		}
		if a := s.do(request(t.Context(), "endpoints", current, 0)); a.Code != http.StatusNotModified || a.after != 0 {
			t.Error("after the end of waits:", a.Code, a.after)
		}
	})
}

// TestMemory checks that a waiting request holds memory of its account. A request without memory is refused
// with the remedy.
func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.publish("e/a")
		connection := memory.New(64<<10, memory.Options{}).Connect(memory.Known, "unix", nil)
		defer connection.Close()
		name := strings.Repeat("x", 2000)
		begin := func(names int) (told chan answer, end func()) {
			account := connection.Open()
			told = make(chan answer, 1)
			body := `{"resource_names": ["` + strings.Repeat(name+`","`, names) + `"]}`
			q := request(memory.With(t.Context(), account), "endpoints", body, 0)
			go func() { told <- s.do(q); account.Close() }()
			synctest.Wait()
			return told, account.Close
		}
		first, _ := begin(1)
		second, _ := begin(1)
		large, _ := begin(10)
		if a := <-large; a.Code != http.StatusServiceUnavailable || a.after > 0 || !strings.Contains(a.Body.String(), "--max-client-memory") || a.Header().Get("Retry-After") == "" {
			t.Error(a.Code, a.after, a.Body)
		}
		for _, waits := range []chan answer{first, second} {
			if a := <-waits; a.Code != http.StatusNotModified || a.after == 0 {
				t.Error(a.Code, a.after, a.Body)
			}
		}
		if again, _ := begin(1); (<-again).Code != http.StatusNotModified {
			t.Error("what has ended still holds memory")
		}
	})
}

const envoyNode = `"node": {"id": "edge", "user_agent_name": "envoy"}`

// TestRefusal checks an Envoy that repeats its request with the old version. It has refused the version, and
// gets it again after a pause, or another version at once. The refusal is logged once.
func TestRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.publish("l/a")
		ask := func(version, want string) string {
			t.Helper()
			told, is := s.ask("listeners", `{`+envoyNode+`, "version_info": "`+version+`"}`, time.Second)
			if told != want {
				t.Errorf("asks with version %q: %s, want %s", version, told, want)
			}
			return is
		}
		v1 := ask("", "a")
		ask(v1, "304")
		s.publish("l/a", "l/bad")
		v2 := ask(v1, "a bad")
		began := time.Now()
		time.Sleep(time.Second)
		for time.Since(began) < 9*time.Second {
			ask(v1, "304")
		}
		time.Sleep(10*time.Second - time.Since(began))
		ask(v1, "a bad")
		time.Sleep(time.Second)
		ask(v1, "304")
		if n := strings.Count(s.log.String(), "response-rejected"); n != 1 || !strings.Contains(s.log.String(), "node=edge") || !strings.Contains(s.log.String(), "version="+v2) {
			t.Errorf("logged: %s", &s.log)
		}
		ask("", "a bad") // a new process
		time.Sleep(time.Second)
		s.publish("l/a", "l/good")
		v3 := ask(v1, "a good")
		ask(v3, "304")
		ask(v1, "a good") // another process
		if n := strings.Count(s.log.String(), "response-rejected"); n != 1 {
			t.Errorf("logged: %s", &s.log)
		}
	})
}

// TestSameTwice checks that repeated requests don't count as rejections if an Envoy sends them within half a
// second, or if the client is not an Envoy.
func TestSameTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.publish("e/a", "c/a")
		for range 3 {
			if told, _ := s.ask("endpoints", `{`+envoyNode+`, "resource_names": ["a"]}`, time.Second); told != "a" {
				t.Error(told)
			}
			time.Sleep(100 * time.Millisecond)
		}
		for range 3 {
			if told, _ := s.ask("clusters", `{"node": {"id": "script"}}`, 0); told != "a" {
				t.Error(told)
			}
			time.Sleep(time.Second)
		}
		if s.log.Len() > 0 {
			t.Error(s.log.String())
		}
	})
}

// TestErrorDetail checks that a client that refuses a version by error_detail doesn't get the version again.
func TestErrorDetail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.publish("l/a")
		ask := func(version, more, want string) string {
			t.Helper()
			told, is := s.ask("listeners", `{"node": {"id": "client"}, "version_info": "`+version+`"`+more+`}`, 0)
			if told != want {
				t.Errorf("asks with version %q%s: %s, want %s", version, more, told, want)
			}
			return is
		}
		v1 := ask("", "", "a")
		s.publish("l/a", "l/bad")
		ask(v1, "", "a bad")
		refusal := `, "error_detail": {"code": 3, "message": "no such port", "details": []}`
		ask(v1, refusal, "304")
		ask(v1, refusal, "304")
		s.publish("l/a", "l/worse")
		ask(v1, refusal, "a worse")
		s.publish("l/a", "l/good")
		ask(v1, refusal, "a good") // the NACK is about the version before
		if log := s.log.String(); strings.Count(log, `error="no such port"`) != 2 {
			t.Error(log)
		}
	})
}

// TestJudge checks the status of the answer to a request that the Judge refuses.
func TestJudge(t *testing.T) {
	s := start(t)
	rule, err := admit.ParseNodeRule("edge=edge.example")
	if err != nil {
		t.Fatal(err)
	}
	certificate := &x509.Certificate{DNSNames: []string{"edge.example"}}
	client := admit.Client{TLS: true, Certificate: certificate}
	s.handler = rest.New(s.cache, rest.Options{
		Judge:  admit.New(admit.Options{Nodes: []admit.NodeRule{rule}, Names: 2}),
		Client: func(*http.Request) admit.Client { return client },
	})
	s.publish("c/a", "s/a", "k/holds")
	ask := func(path, node, names string, want int) {
		t.Helper()
		a := s.do(request(t.Context(), path, `{"node": {"id": "`+node+`"}, "resource_names": [`+names+`]}`, time.Millisecond))
		if a.Code != want {
			t.Errorf("%s of node %s: %d %s, want %d", path, node, a.Code, a.Body, want)
		}
	}
	ask("clusters", "edge", `"a"`, 200)
	ask("clusters", "other", `"a"`, 403)
	ask("clusters", "edge", `"a", "b", "c"`, 413)
	ask("clusters", "edge", `"`+strings.Repeat("a", 5000)+`"`, 400)
	ask("secrets", "edge", `"a"`, 200)
	ask("clusters", "edge", `"holds"`, 200)
	client = admit.Client{Local: true}
	ask("secrets", "any", `"a"`, 200)
	client = admit.Client{Certificate: certificate}
	ask("secrets", "edge", `"a"`, 403)
	ask("clusters", "edge", `"a"`, 200)
	ask("clusters", "edge", `"holds"`, 403)
	ask("clusters", "edge", ``, 403)
}

// TestTTL checks that REST responses have no TTLs, because REST has no stream for heartbeats.
func TestTTL(t *testing.T) {
	s := start(t)
	s.publish("t/a@5")
	if told, _ := s.ask("routes", `{"resource_names": ["a"]}`, 0); told != "a" {
		t.Error(told)
	}
}

// TestDeadlines checks that the deadlines of a server don't end a wait. On a busy machine they may end an
// earlier phase; the test then tries again.
func TestDeadlines(t *testing.T) {
	s := start(t)
	s.publish("e/a")
	server := httptest.NewUnstartedServer(s.handler)
	server.Config.ReadTimeout, server.Config.WriteTimeout = 50*time.Millisecond, 50*time.Millisecond
	server.Start()
	defer server.Close()
	post := func(version string, patience string) (status int, is string, err error) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/v3/discovery:endpoints", strings.NewReader(`{"resource_names": ["a"], "version_info": "`+version+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Envoy-Expected-Rq-Timeout-Ms", patience)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, "", err
		}
		defer answer.Body.Close()
		var response struct {
			Version string `json:"version_info"`
		}
		if err := json.NewDecoder(answer.Body).Decode(&response); err != nil && answer.StatusCode == http.StatusOK {
			return 0, "", err
		}
		return answer.StatusCode, response.Version, nil
	}
	try := func(what string, ask func() (int, string, error), want int) (version string) {
		t.Helper()
		envoytest.Eventually(t, 2*time.Minute, what, func() (bool, string) {
			status, is, err := ask()
			if err == nil && status != want {
				t.Fatalf("%s: %d", what, status)
			}
			version = is
			return err == nil, fmt.Sprint(err)
		})
		return version
	}
	now := func() (int, string, error) { return post("", "0") }
	version := try("an answer at once", now, http.StatusOK)
	try("an answer after 200 ms", func() (int, string, error) { return post(version, "200") }, http.StatusNotModified)
	content := 1
	try("a change after 200 ms", func() (int, string, error) {
		version := try("what is now", now, http.StatusOK)
		content++
		published := make(chan struct{})
		time.AfterFunc(200*time.Millisecond, func() { defer close(published); s.publish(fmt.Sprint("e/a@", content)) })
		defer func() { <-published }()
		return post(version, "0")
	}, http.StatusOK)
}

// TestShares checks that a change of one resource encodes only that resource, and that removed resources are
// forgotten.
func TestShares(t *testing.T) {
	s := start(t)
	var words []string
	for i := range 100 {
		words = append(words, fmt.Sprintf("c/c%03d", i))
	}
	s.publish(words...)
	ask := func() string { return s.do(request(t.Context(), "clusters", "{}", 0)).Body.String() }
	if a, b := ask(), ask(); a != b {
		t.Error("the same is sent otherwise")
	}
	words[7] += "@2"
	s.publish(slices.Delete(words, 50, 51)...)
	if _, _, err := s.cache.Trim(t.Context(), time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if body := ask(); strings.Count(body, `"@type"`) != 99 || strings.Count(body, `"2s"`) != 1 || strings.Contains(body, "c050") {
		t.Error(body)
	}
}

// TestNames checks that all spellings of an xdstp name find the resource, and have the same Question.Key.
func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.publish("e/xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/w%65b", "e/plain")
		told, version := s.ask("endpoints", `{"resource_names": ["xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/web"]}`, 0)
		if told != "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/web" {
			t.Error(told)
		}
		if told, _ = s.ask("endpoints", `{"resource_names": ["xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/we%62"], "version_info": "`+version+`"}`, 0); told != "304" {
			t.Error(told)
		}
	})
}
