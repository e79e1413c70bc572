package observe_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/observe"
	"xdspub/source/rollout"
	"xdspub/watch/control"
	"xdspub/watch/freeze"
	"xdspub/xds/clients"
)

// started is an Observer behind a server.
type started struct {
	*observe.Observer
	log *event.Log
	url string
}

func start(t *testing.T, o observe.Options) *started {
	t.Helper()
	s := &started{Observer: observe.New(o)}
	s.log = event.New(slog.DiscardHandler, s.Event)
	server := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		server.CloseClientConnections() // streams have no end
		server.Close()
	})
	s.url = server.URL
	return s
}

// ask sends a request, and returns status and body.
func (s *started) ask(t *testing.T, method, path string, header ...string) (int, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			q.Host = header[i+1]
		}
		q.Header.Set(header[i], header[i+1])
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

// everything is a state with a value of each field.
func everything() control.Watch {
	now := time.Now().UTC()
	findings := diag.List{{Code: "unknown-field", Severity: diag.Error, Message: "<script>", Position: diag.Position{File: "a.yaml", Line: 1}}}
	pass := control.Reconcile{
		Reason: "change", Began: now, Ended: now, Snapshot: "v2", Retrying: "no", Outcome: control.Published,
		Stages: []control.Stage{{Name: "read", Seconds: 0.5}, {Name: "publish", Seconds: 1}},
	}
	return control.Watch{
		PID: 1, Source: "/src", Revision: "abc", Out: "/out", State: "/state", Envoys: []string{"http://127.0.0.1:1"}, Since: now, Serves: true,
		Snapshot: "v1", SnapshotSince: now, Acknowledged: true, Unconfirmed: "1 of 2",
		Refused: &control.Refusal{Since: now, Snapshot: "v2", Message: "held", Errors: 1, Warnings: 2, Findings: findings,
			Part: &control.Part{WhileRefused: []string{"secrets"}, Time: now, Waits: "an error"}},
		Certificates: control.Certificates{OutOfDate: findings, ExpireSoon: findings},
		EnvoyStates:  []control.EnvoyState{{Address: "http://127.0.0.1:1", State: control.NotApplied, Since: now, Error: "busy"}},
		Checked: control.Checked{
			Resources: map[string]int{"CDS": 2}, Variants: map[string]int{"CDS": 3},
			Counts: []control.CodeCount{{Code: "unknown-field", Severity: diag.Error, Count: 1}}, Findings: findings,
		},
		CertificateExpires: now.Add(time.Hour), Inotify: &control.Inotify{Used: 7, Budget: 120}, Notices: control.ByEvents,
		Upstream: &control.Upstream{Kind: "store", Server: "127.0.0.1:1", Since: now, Error: "<script>", StaleSince: now, MaxStale: 60, Rollout: rollout.Share{
			Candidate: "v2", Base: "v1", Wave: 2, Name: "<script>", Open: 1, Waves: 3, TakenBack: "<script>"}},
		Store: &control.Store{Address: "etcd://127.0.0.1:1/fleet", Writes: true, Writer: "dave@host", Snapshot: "v1", Since: now, Error: "<script>", Rollout: &control.Rollout{
			Snapshot: "v1", Base: "v0", Wave: 1, Waves: 2, Name: "tier=canary", Since: now, State: control.Baking, Message: "<script>", Until: now,
		}},
		Paused:   &control.Shown{Decision: control.Decision{By: "alice@host", Reason: "<script>", Since: now}, Until: now},
		Guarded:  &control.Guarded{Change: "0123456789abcdef", Since: now, What: "<script>"},
		Approved: &control.Shown{Decision: control.Decision{By: "bob@host", Reason: "<script>", Since: now}, Change: "0123456789abcdef"},
		Pinned:   &control.Shown{Decision: control.Decision{By: "bob@host", Reason: "<script>", Since: now}, Entry: "0123456789ab", EntryTime: now},
		Frozen:   &freeze.State{Since: now, Until: now, Zone: "Europe/Berlin", Reason: "<script>"},
		Trial: &control.Trial{
			Decision: control.Decision{By: "carol@host", Reason: "<script>", Since: now}, Snapshot: "v2", Until: now, Entry: "0123456789ab", EntryTime: now, Stuck: "no space",
		},
		Waits:  &control.Waits{Since: now, Snapshot: "v3"},
		Failed: "no space", Last: &pass, Running: &pass, NextTrim: now,
	}
}

// server is a Server of xDS clients.
type server struct{}

func (server) Clients() []clients.Client {
	list := []clients.Client{
		{Node: "a", Kind: "ads", UserAgent: "envoy 1.40.0", Subscriptions: []clients.Subscription{{Sync: clients.Rejected}}},
		{Node: "gone", Kind: "ads", UserAgent: "envoy 1.40.0", Gone: time.Now()},
	}
	for i := range 100 {
		list = append(list, clients.Client{Node: fmt.Sprint(i), Kind: "ads", UserAgent: fmt.Sprintf("mine%c %d", 'a'+i%26, i)})
	}
	return append(list, clients.Client{Node: "evil", Kind: "rest", UserAgent: "x\"} 1\nxdspub_evil"})
}

func (server) Ready(time.Time) (bool, []string) {
	return true, []string{"the CA of clients has expired"}
}

func (server) MayAsk(r *http.Request) error {
	if r.Header.Get("Refused") != "" {
		return errors.New("not you")
	}
	return nil
}

// TestOpenAPI: the answers of the API are those that openapi.yaml describes, with each field.
func TestOpenAPI(t *testing.T) {
	s := start(t, observe.Options{Version: "1.0.0"})
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, is := s.ask(t, "GET", "/api/v1/openapi.yaml"); is != string(text) {
		t.Error(is)
	}
	var doc any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	check := func(path, schema string) {
		t.Helper()
		compiled, err := c.Compile("openapi.json#/components/schemas/" + schema)
		if err != nil {
			t.Fatal(err)
		}
		code, body := s.ask(t, "GET", path)
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
		if err == nil {
			err = compiled.Validate(value)
		}
		if code != 200 || err != nil {
			t.Errorf("%s: %d %v\n%s", path, code, err, body)
		}
	}
	for range 2 { // before the first state, then with each field
		check("/api/v1/status", "Status")
		check("/api/v1/findings", "Findings")
		s.Observe(server{})
		w := everything()
		w.Aggregate = "cluster=web"
		s.Tell("", w)
		s.Tell("edge", control.Watch{})
	}
	var fields map[string]any
	_, body := s.ask(t, "GET", "/api/v1/status")
	if err := json.Unmarshal([]byte(body), &fields); err != nil {
		t.Fatal(err)
	}
	watch := fields["targets"].([]any)[0].(map[string]any)["watch"].(map[string]any)
	described := doc.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any)["Watch"].(map[string]any)["properties"].(map[string]any)
	for name := range described {
		if watch[name] == nil {
			t.Errorf("no answer has %s", name)
		}
	}
}

// TestMetrics: the metrics follow Prometheus' conventions, and no label holds a text of a client.
func TestMetrics(t *testing.T) {
	s := start(t, observe.Options{Version: "1.0.0"})
	s.Observe(server{})
	s.log.Write(event.SourceValid{})
	s.Tell("", everything())
	s.Tell("edge", everything())
	problems, err := testutil.GatherAndLint(s.Registry())
	if err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
	_, body := s.ask(t, "GET", "/metrics")
	for _, want := range []string{
		`xdspub_build_info{goversion="go`, `xdspub_events_total{event="source-valid"} 1`, `xdspub_source_valid 0`, `xdspub_source_valid{target="edge"} 0`,
		`xdspub_source_findings{code="unknown-field",severity="error"} 1`, `xdspub_refused_since_time_seconds{by="envoy"} 1`, `xdspub_refused_part 0`,
		`xdspub_envoys{state="not-applied"} 1`, `xdspub_envoys{state="in-sync"} 0`, `xdspub_resources{type="CDS"} 2`, `xdspub_variants{type="CDS"} 3`,
		`xdspub_stage_duration_seconds_count{stage="read",target=""} 1`, `xdspub_passes_total{result="published",target="edge"} 1`,
		`xdspub_snapshot_unconfirmed 1`, `xdspub_source_failed 1`, `xdspub_source_certificates{state="out-of-date"} 1`,
		`xdspub_clients{kind="ads",program="envoy 1.40.0",state="rejected"} 1`, `xdspub_events_total{event="drift-mended"} 0`,
		`xdspub_snapshot_certificate_expiry_time_seconds 1`, `xdspub_inotify_instances 7`, `xdspub_paused 1`, `xdspub_pinned 1`, `xdspub_guarded 1`, `xdspub_approved 1`, `xdspub_frozen 1`, `xdspub_waits_since_time_seconds 1`, `xdspub_confirm_until_time_seconds 1`, `xdspub_undo_overdue 1`, `xdspub_paused{target="edge"} 1`, `xdspub_inotify_budget{target="edge"} 120`,
		`xdspub_watch_mode{mode="events"} 1`, `xdspub_watch_mode{mode="polling"} 0`, `xdspub_clients{kind="ads",program="other",state="in-sync"} 81`,
		`xdspub_clients{kind="rest",program="other",state="in-sync"} 1`, `go_goroutines`,
		`xdspub_upstream_connected 0`, `xdspub_upstream_since_time_seconds 1`, `xdspub_store_failed 1`,
		`xdspub_rollout_wave 1`, `xdspub_rollout_state{state="baking"} 1`, `xdspub_rollout_state{state="taken-back"} 0`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(body, "evil") || strings.Contains(body, "xdspub_evil") {
		t.Error("a label holds a text of a client")
	}
	if t.Failed() {
		t.Log(body)
	}
	s.Removed("edge")
	if _, body := s.ask(t, "GET", "/metrics"); strings.Contains(body, `target="edge"`) {
		t.Error("a removed target has metrics")
	}
}

// TestPasses: a pass counts once, however often its state is told.
func TestPasses(t *testing.T) {
	s := start(t, observe.Options{})
	w := everything()
	for range 3 {
		s.Tell("", w)
	}
	again := *w.Last
	w.Last = &again
	s.Tell("", w)
	if _, body := s.ask(t, "GET", "/metrics"); !strings.Contains(body, `xdspub_passes_total{result="published",target=""} 2`) {
		t.Error(body)
	}
}

// TestReady: each part must be ready.
func TestReady(t *testing.T) {
	s := start(t, observe.Options{})
	for _, tt := range []struct {
		name string
		tell map[string]control.Watch
		code int
		body string
	}{
		{"before the first state", nil, 503, "not ready\nthe source tree is not read yet\n"},
		{"nothing published", map[string]control.Watch{"": {Acknowledged: true}}, 503, "not ready\nnothing is published\n"},
		{"not acknowledged", map[string]control.Watch{"": {Snapshot: "v1"}}, 503, "not ready\nthe snapshot is not acknowledged yet\n"},
		{"published", map[string]control.Watch{"": {Snapshot: "v1", Acknowledged: true}}, 200, "ok\n"},
		{"invalid", map[string]control.Watch{"": {Snapshot: "v1", Acknowledged: true, Refused: &control.Refusal{Errors: 1}}}, 200, "ok\nthe source tree is invalid (1 error)\n"},
		{"in part", map[string]control.Watch{"": {Snapshot: "v1", Acknowledged: true, Refused: &control.Refusal{
			Since: time.Unix(0, 0), Errors: 1, Part: &control.Part{WhileRefused: []string{"endpoints"}},
		}}}, 200, "ok\nthe source tree is invalid (1 error) since 1970-01-01T00:00:00Z; faultless changes of endpoints go on\n"},
		{"unconfirmed", map[string]control.Watch{"": {Snapshot: "v1", Acknowledged: true, Unconfirmed: "1 of 2 Envoys"}}, 200, "ok\nsnapshot v1 is not confirmed: 1 of 2 Envoys\n"},
	} {
		for name, w := range tt.tell {
			s.Tell(name, w)
		}
		if code, body := s.ask(t, "GET", "/readyz"); code != tt.code || body != tt.body {
			t.Errorf("%s: %d %q, want %d %q", tt.name, code, body, tt.code, tt.body)
		}
	}
	if code, body := s.ask(t, "GET", "/livez"); code != 200 || body != "ok\n" {
		t.Error(code, body)
	}
	s = start(t, observe.Options{})
	s.Tell("a", control.Watch{Snapshot: "v1", Acknowledged: true})
	s.Tell("b", control.Watch{})
	if code, body := s.ask(t, "GET", "/readyz"); code != 503 || body != "not ready\ntarget b: nothing is published\n" {
		t.Error(code, body)
	}
	s.Tell("b", control.Watch{Aggregate: "cluster=web"})
	if code, body := s.ask(t, "GET", "/readyz"); code != 200 || body != "ok\nb: nothing is published\n" {
		t.Error(code, body)
	}
	s.Removed("b")
	if code, body := s.ask(t, "GET", "/readyz"); code != 200 || body != "ok\n" {
		t.Error(code, body)
	}
}

// TestGuard: the API answers only requests for this server from its own pages, and only to those who may ask.
func TestGuard(t *testing.T) {
	s := start(t, observe.Options{Hosts: []string{"xds.example.org"}})
	s.Observe(server{})
	for _, tt := range []struct {
		method, path string
		header       []string
		want         int
	}{
		{"GET", "/api/v1/status", nil, 200},
		{"GET", "/api/v1/status", []string{"Host", "localhost:1"}, 200},
		{"GET", "/api/v1/status", []string{"Host", "XDS.example.org"}, 200},
		{"GET", "/api/v1/status", []string{"Host", "[::1]:80"}, 200},
		{"GET", "/api/v1/status", []string{"Host", "evil.example.com"}, 421},
		{"GET", "/api/v1/events", []string{"Host", "127.0.0.1.evil.example.com"}, 421},
		{"GET", "/api/v1/status", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"GET", "/api/v1/status", []string{"Refused", "yes"}, 403},
		{"POST", "/api/v1/status", nil, 405},
		{"DELETE", "/livez", nil, 405},
		{"GET", "/api/v1/../../etc/passwd", nil, 404},
		{"GET", "/api/v2", nil, 404},
		{"GET", "/", nil, 200},
		{"GET", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		{"GET", "/", []string{"Host", "evil.example.com"}, 421},
		{"GET", "/assets/", nil, 404},
		{"GET", "/assets/style.css", nil, 200},
		{"GET", "/assets/page.html", nil, 404},
		{"GET", "/assets/../openapi.yaml", nil, 404},
		{"GET", "/metrics", []string{"Host", "xdspub.monitoring.svc"}, 200},
		{"HEAD", "/api/v1/events", nil, 200},
		{"HEAD", "/graph?all", nil, 200},
	} {
		if code, body := s.ask(t, tt.method, tt.path, tt.header...); code != tt.want {
			t.Errorf("%s %s %v: %d %s", tt.method, tt.path, tt.header, code, body)
		}
	}
}

// TestProfiles: profiles are there on request only, and for those who may see the status.
func TestProfiles(t *testing.T) {
	for _, on := range []bool{false, true} {
		s := start(t, observe.Options{Profiles: on})
		s.Observe(server{})
		want := map[bool]int{false: 404, true: 200}[on]
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap?debug=1", "/debug/pprof/goroutine?debug=2", "/debug/pprof/profile?seconds=1"} {
			if code, _ := s.ask(t, "GET", path); code != want {
				t.Errorf("%v: %s: %d", on, path, code)
			}
			if code, _ := s.ask(t, "GET", path, "Refused", "yes"); code != 403 {
				t.Errorf("%v: %s for somebody else: %d", on, path, code)
			}
		}
	}
}

// follow opens a stream of events, and returns a function that reads the next event: id, name and data.
func (s *started) follow(t *testing.T, query, last string) func() (id, name, data string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	q, err := http.NewRequestWithContext(ctx, "GET", s.url+"/api/v1/events"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		q.Header.Set("Last-Event-ID", last)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Body.Close() })
	if r.StatusCode != 200 || r.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatal(r.Status, r.Header)
	}
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 1<<20)
	return func() (id, name, data string) {
		t.Helper()
		for lines.Scan() {
			key, value, _ := strings.Cut(lines.Text(), ": ")
			switch {
			case key == "id":
				id = value
			case key == "event":
				name = value
			case key == "data":
				return id, name, value
			case key == "" && value != "": // a comment
				return "", "", value
			}
		}
		t.Fatal(lines.Err())
		return "", "", ""
	}
}

// TestEvents: a stream has the remembered events and each later one; a client that comes back misses nothing and
// gets nothing twice.
func TestEvents(t *testing.T) {
	s := start(t, observe.Options{})
	s.log.Write(event.Published{Snapshot: "v1"})
	next := s.follow(t, "", "")
	first, name, data := next()
	if name != "published" || !strings.Contains(data, `"event":"published","snapshot":"v1"`) || !json.Valid([]byte(data)) {
		t.Fatal(name, data)
	}
	s.log.For("edge").Write(event.SourceValid{})
	if _, name, data := next(); name != "source-valid" || !strings.Contains(data, `"target":"edge"`) {
		t.Error(name, data)
	}
	if _, name, _ := s.follow(t, "", first)(); name != "source-valid" {
		t.Errorf("after the first event comes %s", name)
	}
	if _, name, _ := s.follow(t, "?since="+first, "")(); name != "source-valid" {
		t.Errorf("after the first event comes %s", name)
	}
	if _, _, comment := s.follow(t, "", "other-7")(); !strings.Contains(comment, "no such event") {
		t.Errorf("an id of another process: %s", comment)
	}
	only, now := s.follow(t, "?event=held&event=recovered", ""), s.follow(t, "?since=now", "")
	s.log.Write(event.Recovered{Reason: "change"})
	for _, next := range []func() (string, string, string){only, now} {
		if _, name, _ := next(); name != "recovered" {
			t.Error(name)
		}
	}
}

// TestManyEvents: memory is bounded by events and by bytes, and a slow reader is told what it missed.
func TestManyEvents(t *testing.T) {
	s := start(t, observe.Options{})
	s.log.Write(event.Published{Snapshot: "v1"})
	next := s.follow(t, "", "")
	first, _, _ := next()
	long := strings.Repeat("x", 1<<20)
	for range 12_000 {
		s.log.Write(event.Failed{Error: errors.New("no"), Reason: "change"})
	}
	s.log.Write(event.Failed{Error: errors.New(long), Reason: "change"})
	again := s.follow(t, "", first)
	if _, _, comment := again(); comment != "2001 events are forgotten" {
		t.Error(comment)
	}
	var last string
	for range 10_000 {
		_, _, last = again()
	}
	if !strings.Contains(last, `"omitted_bytes":10`) || len(last) > 1000 {
		t.Errorf("%.1000s", last)
	}
}

// TestManyStreams: streams above the limit are refused, and a stream that ends makes room.
func TestManyStreams(t *testing.T) {
	s := start(t, observe.Options{})
	s.log.Write(event.SourceValid{})
	ctx, cancel := context.WithCancel(t.Context())
	for range 100 {
		q, _ := http.NewRequestWithContext(ctx, "GET", s.url+"/api/v1/events", nil)
		r, err := http.DefaultClient.Do(q)
		if err != nil || r.StatusCode != 200 {
			t.Fatal(err, r)
		}
		defer r.Body.Close()
	}
	if code, body := s.ask(t, "GET", "/api/v1/events"); code != 503 || !strings.Contains(body, "100 streams") {
		t.Error(code, body)
	}
	if code, _ := s.ask(t, "GET", "/livez"); code != 200 {
		t.Error(code)
	}
	cancel()
	for ends := time.Now().Add(time.Minute); time.Now().Before(ends); time.Sleep(10 * time.Millisecond) {
		q, _ := http.NewRequestWithContext(t.Context(), "GET", s.url+"/api/v1/events", nil)
		if r, err := http.DefaultClient.Do(q); err == nil {
			r.Body.Close()
			if r.StatusCode == 200 {
				return
			}
		}
	}
	t.Error("no stream ends")
}

// TestSilentReader: a client that reads nothing holds up no event, and the events of others go on.
func TestSilentReader(t *testing.T) {
	s := start(t, observe.Options{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	next := s.follow(t, "?event=recovered", "")
	text := strings.Repeat("x", 10_000)
	for range 1000 {
		s.log.Write(event.Failed{Error: errors.New(text), Reason: "change"})
	}
	s.log.Write(event.Recovered{Reason: "change"})
	if _, name, _ := next(); name != "recovered" {
		t.Error(name)
	}
}
