package hook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"xdspub/event"
	"xdspub/observe/hook"
)

// post is a request that a receiver got.
type post struct {
	path   string
	header http.Header
	body   string
}

// receiver is a web server that remembers the requests.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	posts []post
	// answer answers the n-th request, from 0; nil for 200.
	answer func(w http.ResponseWriter, n int)
}

func newReceiver(t *testing.T, answer func(w http.ResponseWriter, n int)) *receiver {
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	r.mu.Lock()
	n := len(r.posts)
	r.posts = append(r.posts, post{q.Method + " " + q.URL.RequestURI(), q.Header, string(body)})
	r.mu.Unlock()
	if r.answer != nil {
		r.answer(w, n)
	}
}

// got returns the requests so far.
func (r *receiver) got() []post {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]post(nil), r.posts...)
}

// webhook parses a webhook.
func webhook(t *testing.T, text string) []hook.Webhook {
	t.Helper()
	w, err := hook.ParseWebhook(text)
	if err != nil {
		t.Fatal(err)
	}
	return []hook.Webhook{w}
}

// status answers with a status.
func status(codes ...int) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, n int) { w.WriteHeader(codes[min(n, len(codes)-1)]) }
}

// signature returns the signature of a body.
func signature(key, body string) string {
	m := hmac.New(sha256.New, []byte(key))
	m.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(m.Sum(nil))
}

// TestWebhook: a web server gets the line of --log-format json, signed with the key that the file has at that time.
func TestWebhook(t *testing.T) {
	r := newReceiver(t, nil)
	secret := filepath.Join(t.TempDir(), "secret")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(secret, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first key\n")
	w := start(t, hook.Options{Version: "1.0", Secret: secret, Times: quick, Webhooks: webhook(t, "published,error="+r.URL+"/hook?a=b")})
	w.log(event.SourceValid{})
	w.log(event.Published{Snapshot: "v1"})
	eventually(t, "an event", func() bool { return len(r.got()) == 1 })
	write("second key")
	w.For("edge").Write(event.Failed{Error: errors.New("no space"), Reason: "change"})
	eventually(t, "an event", func() bool { return len(r.got()) == 2 })
	write("") // a key that is being written
	w.log(event.Published{Snapshot: "v2"})
	eventually(t, "a failure", func() bool { return len(w.own()) > 0 })
	write("third key\r\n")
	eventually(t, "an event", func() bool { return len(r.got()) == 3 })
	w.hooks.Close()
	var lines []string
	for line := range strings.Lines(w.text()) {
		if strings.Contains(line, `"event":"published"`) || strings.Contains(line, `"event":"failed"`) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	ids := make(map[string]bool)
	for i, p := range r.got() {
		key := []string{"first key", "second key", "third key"}[i]
		h := p.header
		if p.path != "POST /hook?a=b" || p.body != lines[i] || h.Get("X-Xdspub-Signature-256") != signature(key, p.body) ||
			h.Get("Content-Type") != "application/json" || h.Get("User-Agent") != "xdspub/1.0" ||
			h.Get("X-Xdspub-Event") != []string{"published", "failed", "published"}[i] {
			t.Errorf("%+v, want the body\n%s", p, lines[i])
		}
		ids[h.Get("Idempotency-Key")] = true
	}
	if own := w.own(); len(ids) != 3 || !strings.Contains(own[0].(event.WebhookFailed).Error.Error(), "secret is empty") {
		t.Errorf("%v %+v", ids, own)
	}
}

// TestRetry: what a server does not accept for a time is sent again, with the same id, and what it refuses is not.
func TestRetry(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(http.ResponseWriter, int)
		posts  int
		own    string
	}{
		{"accepted", status(204), 1, ""},
		{"an error, and busy, then accepted", status(500, 429, 408, 503, 200), 5, "the server answers 500 Internal Server Error, lost 0; recovered, lost 0"},
		{"refused", status(400), 1, "the server answers 400 Bad Request, lost 1"},
		{"gone", status(410), 1, "the server answers 410 Gone, lost 1"},
		{"an unknown status", status(499), 1, "the server answers 499, lost 1"},
		{"a redirect", func(w http.ResponseWriter, _ int) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(307)
		}, 1, "the server answers 307 Temporary Redirect, and xdspub follows no redirect: use the URL that the server redirects to, lost 1"},
		{"a closed connection, then accepted", func(_ http.ResponseWriter, n int) {
			if n == 0 {
				panic(http.ErrAbortHandler)
			}
		}, 2, "EOF, lost 0; recovered, lost 0"},
		{"a pause of an hour, bounded", func(w http.ResponseWriter, n int) {
			if n == 0 {
				w.Header().Set("Retry-After", "3600")
				w.WriteHeader(503)
			}
		}, 2, "the server answers 503 Service Unavailable, lost 0; recovered, lost 0"},
		{"a date to retry at, bounded", func(w http.ResponseWriter, n int) {
			if n == 0 {
				w.Header().Set("Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
				w.WriteHeader(503)
			}
		}, 2, "the server answers 503 Service Unavailable, lost 0; recovered, lost 0"},
		{"a body without end", func(w http.ResponseWriter, _ int) {
			for {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, 1, ""},
		{"a header of 1 MiB, then accepted", func(w http.ResponseWriter, n int) {
			if n == 0 {
				w.Header().Set("X", strings.Repeat("x", 1<<20))
			}
		}, 2, "net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 65536 bytes; aborted, lost 0; recovered, lost 0"},
		{"no response, then accepted", func(_ http.ResponseWriter, n int) {
			if n == 0 {
				time.Sleep(500 * time.Millisecond)
			}
		}, 2, "no answer within 300ms, lost 0; recovered, lost 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, tt.answer)
			times := quick
			times.Report = time.Hour
			if strings.Contains(tt.own, "within 300ms") {
				times.Timeout = 300 * time.Millisecond
			}
			w := start(t, hook.Options{Times: times, Webhooks: webhook(t, r.URL)})
			w.log(event.SourceValid{})
			eventually(t, "the requests", func() bool { return len(r.got()) >= tt.posts })
			if strings.Contains(tt.own, "recovered") {
				eventually(t, "the end of the failure", func() bool { return len(w.own()) == 2 })
			}
			w.hooks.Close()
			var own []string
			for _, e := range w.own() {
				switch e := e.(type) {
				case event.WebhookFailed:
					own = append(own, fmt.Sprintf("%v, lost %d", e.Error, e.Lost))
				case event.HookRecovered:
					own = append(own, fmt.Sprintf("recovered, lost %d", e.Lost))
				}
			}
			if is := strings.Join(own, "; "); is != tt.own {
				t.Errorf("%s\nwant\n%s", is, tt.own)
			}
			list := r.got()
			if len(list) != tt.posts && times.Timeout == 0 { // on a busy machine, more requests may get no response in time
				t.Errorf("%d requests", len(list))
			}
			for _, p := range list {
				if p.header.Get("Idempotency-Key") != list[0].header.Get("Idempotency-Key") || p.body != list[0].body || p.path != "POST /" {
					t.Errorf("%+v, first %+v", p, list[0])
				}
			}
		})
	}
}

// TestGiveUp: an event that a server never accepts does not hold up the others for ever.
func TestGiveUp(t *testing.T) {
	times := quick
	times.GiveUp = 50 * time.Millisecond
	var r *receiver
	r = newReceiver(t, func(w http.ResponseWriter, n int) {
		if strings.Contains(r.got()[n].body, `"poison"`) {
			w.WriteHeader(500)
		}
	})
	w := start(t, hook.Options{Times: times, Webhooks: webhook(t, r.URL)})
	w.log(event.Published{Snapshot: "poison"})
	w.log(event.Published{Snapshot: "good"})
	eventually(t, "the other event", func() bool {
		list := r.got()
		return len(list) > 2 && strings.Contains(list[len(list)-1].body, `"good"`)
	})
}

// TestWebhookEnds: Close ends a backoff, tries each event once more, and stops at the first failure.
func TestWebhookEnds(t *testing.T) {
	for _, tt := range []struct {
		name  string
		codes []int
		posts int
		lost  int
	}{
		{"the server accepts again", []int{500, 200}, 4, 0},
		{"the server still fails", []int{500}, 2, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newReceiver(t, status(tt.codes...))
			w := start(t, hook.Options{Webhooks: webhook(t, r.URL), Times: hook.Times{LeastBackoff: time.Hour, MostBackoff: time.Hour, Report: time.Nanosecond, Exit: time.Minute}})
			for range 3 {
				w.log(event.SourceValid{})
			}
			eventually(t, "a failure", func() bool { return len(w.own()) == 1 })
			w.hooks.Close()
			lost := 0
			for _, e := range w.own() {
				if failed, ok := e.(event.WebhookFailed); ok {
					lost += failed.Lost
				}
			}
			if list := r.got(); len(list) != tt.posts || lost != tt.lost {
				t.Errorf("%d requests, %d lost", len(list), lost)
			}
		})
	}
	t.Run("a server that says nothing", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		w := start(t, hook.Options{Webhooks: webhook(t, "http://"+l.Addr().String()), Times: hook.Times{Timeout: time.Hour, Exit: 50 * time.Millisecond}})
		w.log(event.SourceValid{})
		w.hooks.Close()
		if own := w.own(); len(own) != 1 || own[0].(event.WebhookFailed).Lost != 1 {
			t.Errorf("%+v", own)
		}
	})
}

// TestNothingSecret: no event has the path, the query or the password of a URL, nor the key of the signature, whatever
// the server answers.
func TestNothingSecret(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // an echo server
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); conn.Close() }()
		}
	}()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("canary-key"), 0o600); err != nil {
		t.Fatal(err)
	}
	refusing := newReceiver(t, func(w http.ResponseWriter, _ int) {
		w.WriteHeader(404)
		fmt.Fprint(w, "Cannot POST /canary-path")
	})
	w := start(t, hook.Options{Times: quick, Secret: secret, Webhooks: append(append(
		webhook(t, "http://canary-user:canary-password@"+l.Addr().String()+"/canary-path?canary-query"),
		webhook(t, refusing.URL+"/canary-path?canary-query")...), webhook(t, "http://127.0.0.1:1/canary-path?canary-query")...)})
	w.log(event.SourceValid{})
	eventually(t, "failures", func() bool { return len(w.own()) > 5 })
	w.hooks.Close()
	for _, want := range []string{`"error":"no valid answer by HTTP or TLS","lost":0`, `"error":"the server answers 404 Not Found","lost":1`, "connection refused"} {
		if !strings.Contains(w.text(), want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(w.text(), "canary") || t.Failed() {
		t.Error(w.text())
	}
}

// TestWebhookTLS: a server needs a certificate of a CA of the system or of --webhook-ca, which may change.
func TestWebhookTLS(t *testing.T) {
	r := &receiver{}
	r.Server = httptest.NewTLSServer(r)
	defer r.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	without := start(t, hook.Options{Times: quick, Webhooks: webhook(t, r.URL)})
	if err := (hook.Options{CA: file}).Check(); err == nil || !strings.Contains(err.Error(), "has no certificate in PEM") {
		t.Error(err)
	}
	with := start(t, hook.Options{Times: quick, Webhooks: webhook(t, r.URL), CA: file})
	for _, w := range []*workbench{without, with} {
		w.log(event.SourceValid{})
		eventually(t, "a failure", func() bool { return len(w.own()) > 0 })
	}
	without.hooks.Close()
	if text := without.text(); !strings.Contains(text, "x509: certificate signed by unknown authority") {
		t.Error(text)
	}
	if text := with.text(); !strings.Contains(text, "has no certificate in PEM") || len(r.got()) > 0 {
		t.Error(text, r.got())
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
	if err := os.WriteFile(file, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an event", func() bool { return len(r.got()) == 1 })
}

// TestNoProxy: the variables of proxies have no effect.
func TestNoProxy(t *testing.T) {
	proxy, r := newReceiver(t, nil), &receiver{}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var l net.Listener
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			l, err = net.Listen("tcp", net.JoinHostPort(ip.IP.String(), "0"))
		}
	}
	if l == nil || err != nil {
		t.Skipf("NOT TESTED: this machine has only loopback addresses (%v)", err)
	}
	r.Server = httptest.NewUnstartedServer(r)
	r.Listener.Close()
	r.Listener = l
	r.Start()
	defer r.Close()
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	if u, err := http.ProxyFromEnvironment(httptest.NewRequest("POST", r.URL, nil)); err != nil || u == nil {
		t.Skipf("NOT TESTED: another test has read the variables of proxies already (%v)", err)
	}
	w := start(t, hook.Options{Times: quick, Webhooks: webhook(t, r.URL)})
	w.log(event.SourceValid{})
	w.hooks.Close()
	if len(r.got()) != 1 || len(proxy.got()) != 0 {
		t.Errorf("%d requests, %d by the proxy", len(r.got()), len(proxy.got()))
	}
}

// TestCurl: the command of docs/hooks.md posts an event by curl.
func TestCurl(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("NOT TESTED: curl is not installed")
	}
	page, err := os.ReadFile("../../docs/hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "--on-event 'warn=curl")
	text, _, found := strings.Cut(text, "https://hooks.example.org/xds'")
	if !found {
		t.Fatal("docs/hooks.md has no command with curl")
	}
	r := newReceiver(t, status(500, 200))
	w := start(t, hook.Options{Times: quick, Commands: command(t, "warn=curl"+text+r.URL)})
	for range 2 {
		w.log(event.Failed{Error: errors.New("no space"), Reason: "change"})
	}
	w.hooks.Close()
	list, own := r.got(), w.own()
	if len(list) != 2 || list[1].header.Get("Content-Type") != "application/json" || !strings.Contains(list[1].body, `"error":"no space"`) {
		t.Errorf("%+v", list)
	}
	if len(own) != 2 || !strings.Contains(own[0].(event.HookFailed).Error.Error(), "it said: curl: (22)") {
		t.Errorf("%+v", own)
	}
}

// TestSlack: a server that checks requests as Slack's incoming webhooks do accepts an event. In a text for Slack, &, <
// and > are escaped.
func TestSlack(t *testing.T) {
	var text string
	r := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var message struct {
			Text string `json:"text"`
		}
		d := json.NewDecoder(q.Body)
		d.DisallowUnknownFields()
		switch err := d.Decode(&message); {
		case q.Method != "POST" || q.Header.Get("Content-Type") != "application/json" || err != nil:
			http.Error(w, "invalid_payload", 400)
		case message.Text == "":
			http.Error(w, "no_text", 400)
		case len(message.Text) > 4000:
			http.Error(w, "msg_too_long", 400)
		default:
			text = message.Text
			fmt.Fprint(w, "ok")
		}
	}))
	defer r.Close()
	w := start(t, hook.Options{Webhooks: webhook(t, "failed=slack+"+r.URL+"/services/T/B/X")})
	w.For("edge").Write(event.Failed{Error: errors.New("<!channel> & é" + strings.Repeat("é", 2000)), Reason: "change"})
	w.hooks.Close()
	host, _ := os.Hostname()
	want := "*ERROR failed* on " + host + ", target edge: " + event.KindOf(event.Failed{}).Message + "\nerror: &lt;!channel&gt; &amp; éé"
	if len(w.own()) > 0 || !strings.HasPrefix(text, want) || !strings.HasSuffix(text, "é…\nreason: change") {
		t.Errorf("%+v %s", w.own(), text)
	}
}

// TestAlertmanager: a real Alertmanager has an alert for an event, with its level as the severity.
func TestAlertmanager(t *testing.T) {
	out, err := exec.Command("../../scripts/alertmanager").Output()
	if err != nil {
		t.Skip("NOT TESTED: scripts/alertmanager finds no Alertmanager")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(config, []byte("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	cmd := exec.CommandContext(t.Context(), strings.TrimSpace(string(out)), "--config.file="+config, "--storage.path="+dir,
		"--web.listen-address="+address, "--cluster.listen-address=")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	get := func(path string) string {
		r, err := http.Get("http://" + address + path)
		if err != nil {
			return ""
		}
		defer r.Body.Close()
		body, _ := io.ReadAll(r.Body)
		if r.StatusCode != 200 {
			return ""
		}
		return string(body)
	}
	eventually(t, "Alertmanager", func() bool { return get("/-/ready") != "" })
	w := start(t, hook.Options{Webhooks: webhook(t, "warn=alertmanager+http://"+address+"/api/v2/alerts")})
	w.For("edge").Write(event.Failed{Error: errors.New("no space"), Reason: "change"})
	w.log(event.WatchPartial{Error: errors.New("no"), Rescan: time.Minute})
	w.hooks.Close()
	if own := w.own(); len(own) > 0 {
		t.Fatalf("%+v", own)
	}
	var alerts []struct {
		Labels, Annotations map[string]string
	}
	eventually(t, "the alerts", func() bool {
		return json.Unmarshal([]byte(get("/api/v2/alerts?"+url.Values{"filter": {`job="xdspub"`}}.Encode())), &alerts) == nil && len(alerts) == 2
	})
	host, _ := os.Hostname()
	for _, a := range alerts {
		text, _ := json.Marshal(a)
		want := `{"Labels":{"alertname":"xdspub-failed","event":"failed","instance":"` + host + `","job":"xdspub","severity":"critical","target":"edge"},
			"Annotations":{"error":"no space","reason":"change","summary":"` + event.KindOf(event.Failed{}).Message + `"}}`
		if a.Labels["event"] == "watch-partial" {
			want = `{"Labels":{"alertname":"xdspub-watch-partial","event":"watch-partial","instance":"` + host + `","job":"xdspub","severity":"warning"},
			"Annotations":{"error":"no","rescan":"1m0s","summary":"` + event.KindOf(event.WatchPartial{}).Message + `"}}`
		}
		if !equal(t, string(text), want) {
			t.Errorf("%s, want %s", text, want)
		}
	}
}
