package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"xdspub/tools/envoytest"
	"xdspub/tools/unixhttp"
	"xdspub/watch/control"
)

// The secrets of TestWords, by their ways in. Each begins with mark.
const mark = "canary7"

// secretLines are source lines with a secret and a fault.
var secretLines = []string{
	`api_token: ` + mark + `-1`, `token: "` + mark + `-2"`, `password: {inline_string: ` + mark + `-3}`, `clientSecret: ` + mark + `-4`,
	`header: {key: x-my-token, value: ` + mark + `-5}`, `uri: "https://a.example/?access_token=` + mark + `-6"`,
	`generic_secret: {secret: {"` + mark + `-7": 1}}`, `metadata: {filter_metadata: {password: {"` + mark + `-8": !!binary x}}}`,
}

// TestWords checks that no view shows a secret that comes by other ways than the fields of the API: in faulty source
// lines, in the words with which Envoy refuses a file, in the answer of an admin interface, in the answer of a webhook,
// in settings and in the environment. All that is no secret is shown.
func TestWords(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json", "logfmt"} {
		t.Run(format, func(t *testing.T) { t.Parallel(); wordsAreHidden(t, format) })
	}
}

func wordsAreHidden(t *testing.T, format string) {
	s := newFixture(t, map[string]string{"a.yaml": staticCluster("password-service", 1)})
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, `password-service: password=%s-20 token: %s-21 {"api_token":"%s-22"}`, mark, mark, mark)
	}))
	t.Cleanup(admin.Close)
	webhook := echo(t)
	hooked := filepath.Join(t.TempDir(), "events")
	socket := filepath.Join(shortDir(t), "http")
	s.args = append(s.args, "--rescan", "200ms", "--log-format", format, "--http", "unix:"+socket, "--envoy-admin", admin.URL, "--ack-timeout", "1s",
		"--webhook", fmt.Sprintf("http://user:%s-30@%s/services/%s-31?key=%s-32", mark, webhook, mark, mark),
		"--on-event", "sh -c 'tee -a "+hooked+"; echo password="+mark+"-33 >&2; exit 1'")
	cmd := exec.Command(watcher, append(append([]string{"watch"}, s.args...), s.src)...)
	cmd.Env = append(environment(), "API_TOKEN="+mark+"-40")
	s.watch = startCommand(t, cmd)
	said := func(event string) {
		t.Helper()
		form := map[string]string{"text": "event=" + event, "json": `"event":"` + event + `"`, "logfmt": "event=" + event}[format]
		s.watch.WaitLog(t, form)
	}
	said("webhook-failed")
	s.write(t, "b.yaml", `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: b, `+strings.Join(secretLines[:1], ", ")+"}\n")
	said("source-invalid")
	for _, line := range secretLines {
		s.write(t, "b.yaml", "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: b\nbogus: 1\n"+line+"\n")
		views := map[string]string{}
		for _, form := range []string{"text", "json", "sarif", "github", "gitlab", "junit"} {
			stdout, stderr, exit := xdspub(t, "validate", "--format", form, s.src)
			if views["validate "+form] = stdout + stderr; exit != 1 {
				t.Errorf("validate of %s: exit status %d", line, exit)
			}
		}
		hidden(t, line, views)
	}
	s.watch.Signal(t, syscall.SIGUSR1)
	said("status")
	s.watch.ending.Store(false)
	envoytest.Eventually(t, patience, "the status has the answer of the admin interface", func() (bool, string) {
		w, err := control.Ask(t.Context(), s.out)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(w)
		return strings.Contains(string(text), "password-service") && len(w.EnvoyStates) == 1, string(text)
	})
	views := map[string]string{"log": s.watch.Log()}
	for _, path := range []string{"/metrics", "/readyz?verbose", "/api/v1/status", "/api/v1/findings", "/", "/state", "/graph", "/graph.svg"} {
		views[path], _ = getUnix(socket, path)
	}
	views["/api/v1/events"] = eventsOf(t, socket)
	for _, form := range []string{"text", "json"} {
		stdout, stderr, _ := xdspub(t, "status", "--format", form, "--out", s.out, "--envoy-admin", admin.URL, s.src)
		views["status "+form] = stdout + stderr
	}
	passed, err := os.ReadFile(hooked)
	if err != nil {
		t.Fatal(err)
	}
	views["the input of a hook"] = string(passed)
	hidden(t, "the watch", views)
	for _, view := range []string{"log", "/api/v1/status", "the input of a hook", "/api/v1/events"} {
		if !strings.Contains(views[view], "password-service") {
			t.Errorf("%s hides the name of a cluster:\n%.2000s", view, views[view])
		}
	}
}

// TestWordsOfEnvoy checks that no view shows a secret of the words with which an Envoy refuses a file: the message of
// Lua quotes the script.
func TestWordsOfEnvoy(t *testing.T) {
	t.Parallel()
	up := envoytest.NewUpstream(t, "up")
	s := startConfirmed(t, map[string]string{"up.yaml": staticCluster("password-service", up.Port())}, "--disable", "lua-syntax")
	filter := `{name: lua, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, default_source_code: {inline_string: "password='` + mark + `-50' = 1"}}}`
	text := listener("edge", envoytest.FreePort(t), "route_config: {"+hosts("password-service")+"}")
	s.write(t, "edge.yaml", strings.Replace(text, "http_filters: [", "http_filters: ["+filter+", ", 1))
	s.watch.WaitLog(t, "event=rolled-back ")
	line := s.watch.WaitLog(t, "code=refused-by-envoy")
	if !strings.Contains(line, "script load error") {
		t.Error(line)
	}
	views := map[string]string{"log": s.watch.Log()}
	for _, form := range []string{"text", "json"} {
		stdout, stderr, _ := xdspub(t, "status", "--format", form, "--out", s.out, "--envoy-admin", "http://"+address(s.admin), s.src)
		views["status "+form] = stdout + stderr
	}
	hidden(t, "a refusal", views)
}

// hidden fails the test if a view has a secret.
func hidden(t *testing.T, of string, views map[string]string) {
	t.Helper()
	for name, text := range views {
		for line := range strings.Lines(text) {
			if strings.Contains(line, mark) {
				t.Errorf("%s: %s has a secret: %.1000s", of, name, line)
			}
		}
	}
}

// echo returns the address of a server that answers each line of a request with the line.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); conn.Close() }()
		}
	}()
	return l.Addr().String()
}

// eventsOf returns the remembered events of an HTTP server.
func eventsOf(t *testing.T, socket string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := unixhttp.Client(socket).Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	var text strings.Builder
	for lines := bufio.NewScanner(a.Body); lines.Scan() && !strings.Contains(lines.Text(), `"event":"status"`); {
		text.WriteString(lines.Text() + "\n")
	}
	return text.String()
}
