package envoy_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"xdspub/envoy"
)

// liar answers like the admin interface of an Envoy that started at the time of boot. A handler of instead answers
// in place of a path.
func liar(boot func() string, instead map[string]http.HandlerFunc) http.Handler {
	mux := http.NewServeMux()
	says := func(path string, text func() string) {
		handler, other := instead[path]
		if !other {
			handler = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text()) }
		}
		mux.HandleFunc(path, handler)
	}
	says("/config_dump", func() string { return dump(boot(), "{}") })
	says("/server_info", func() string { return `{"command_line_options": {"drain_time": "600s"}}` })
	says("/ready", func() string { return "LIVE\n" })
	says("/stats", func() string { return `{"stats": []}` })
	return mux
}

func dump(boot, bootstrap string) string {
	return fmt.Sprintf(`{"configs": [{"bootstrap": %s, "last_updated": %q}]}`, bootstrap, boot)
}

func always(boot string) func() string { return func() string { return boot } }

const someBoot = "2030-01-02T03:04:05.678Z"

// TestHostileAdmin: for each wrong answer, the error names the fault. The package reads no more bytes than Envoy
// could send.
func TestHostileAdmin(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	endless := func(before, block string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, err := io.WriteString(w, before)
			for block := strings.Repeat(block, 1000); err == nil && r.Context().Err() == nil; {
				_, err = io.WriteString(w, block)
			}
		}
	}
	says := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	var packed, paths strings.Builder
	packer := gzip.NewWriter(&packed)
	_, _ = packer.Write(make([]byte, 10<<20))
	packer.Close()
	for i := range 10_001 {
		fmt.Fprintf(&paths, `{"cds_config": {"path": "/x/%d"}},`, i)
	}
	for name, c := range map[string]struct {
		path    string
		handler http.HandlerFunc
		want    string
	}{
		"a redirection elsewhere": {"/stats", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) }, "/stats returned status 302"},
		"headers without end": {"/stats", func(w http.ResponseWriter, _ *http.Request) {
			for i := range 2000 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 100))
			}
		}, "/stats returned more than 64 KiB of headers"},
		"a packed answer": {"/stats", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, packed.String())
		}, `/stats returned "\x1f\x8b`},
		"statistics without end":         {"/stats", endless(`{"stats": [`, `{"name": "x.update_attempt", "value": 1},`), "/stats returned more than 32 MiB"},
		"many statistics":                {"/stats", says(`{"stats": [` + strings.Repeat(`{},`, 1_000_001) + `{}]}`), "/stats returned more than 1000000 statistics"},
		"a statistic with a long name":   {"/stats", says(`{"stats": [{"name": "` + strings.Repeat(".", 1_000_000) + `.update_attempt", "value": 1}]}`), "/stats returned a statistic with a name of 1000015 bytes, the limit is 65536"},
		"statistics that are cut off":    {"/stats", says(`{"stats": [{"name": "x"`), `/stats returned "{\"stats\"`},
		"statistics that are none":       {"/stats", says(`[1, 2]`), `/stats returned "[1, 2]"`},
		"more after the statistics":      {"/stats", says(`{"stats": [], "more": 1}`), "/stats returned"},
		"nesting":                        {"/stats", says(`{"stats": [{"value": ` + strings.Repeat("[", 1<<20)), "/stats returned"},
		"a bootstrap with many files":    {"/config_dump", says(dump(someBoot, `{"x": [`+paths.String()+`{}]}`)), "/config_dump returned a bootstrap that names 10001 files"},
		"a start that is no time":        {"/config_dump", says(dump("yesterday", "{}")), "/config_dump returned"},
		"a state that is none":           {"/ready", says("\x1b[2J"), `/ready returned "\x1b[2J"`},
		"a word without end":             {"/ready", endless("LIVE", "x"), "/ready returned more than 8 MiB"},
		"a drain time that is none":      {"/server_info", says(`{"command_line_options": {"drain_time": "soon"}}`), "/server_info returned"},
		"another protocol from now on":   {"/ready", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusSwitchingProtocols) }, "/ready returned nothing"},
		"an informational answer before": {"/stats", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints) }, "/stats returned status 103"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(liar(always(someBoot), map[string]http.HandlerFunc{c.path: c.handler}))
			t.Cleanup(server.Close)
			var err error
			for silent := true; silent; { // on a busy machine, the answer may not come in time
				_, err = admin(t, server.URL).Read(t.Context(), []string{envoy.RDS(envoy.Any, "x")})
				_, silent = errors.AsType[*envoy.TimeoutError](err)
			}
			if !isNotEnvoy(err, c.want) {
				t.Errorf("%T %.300v, want %q", err, err, c.want)
			}
		})
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d redirections were followed", n)
	}
}

// TestMoreThanAsked: further bytes after an answer are read as the next answer.
func TestMoreThanAsked(t *testing.T) {
	answer := func(text string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	}
	a := raw(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, answer(dump(someBoot, "{}"))+"SSH-2.0-OpenSSH_9.9\r\n")
		_, _ = io.Copy(io.Discard, conn)
	})
	if _, err := a.Read(t.Context(), nil); !isNotEnvoy(err, "SSH-2.0") {
		t.Errorf("%T %v", err, err)
	}
}

// TestReadEnds: the context ends an observation of a peer that does not finish its answer.
func TestReadEnds(t *testing.T) {
	began := make(chan struct{}, 1)
	hang := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, " ")
		_ = http.NewResponseController(w).Flush()
		began <- struct{}{}
		<-r.Context().Done()
	}
	for _, path := range []string{"/config_dump", "/server_info", "/ready", "/stats"} {
		server := httptest.NewServer(liar(always(someBoot), map[string]http.HandlerFunc{path: hang}))
		t.Cleanup(server.Close)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-began; cancel() }()
		if _, err := admin(t, server.URL).Read(ctx, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %T %v", path, err, err)
		}
	}
}

// TestUnstable: several processes answer at one address, in turn. Read reports it after a few answers, whether each
// connection or each request goes to another process: before an AckWait begins, or after as many questions as there
// are processes.
func TestUnstable(t *testing.T) {
	start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	var asked atomic.Int32
	later := func() string { return start.Add(time.Duration(asked.Add(1)) * time.Second).Format(time.RFC3339Nano) }
	boots := []string{"2030-01-02T03:04:05.001Z", "2030-01-02T03:04:05.002Z", "2030-01-02T03:04:05.003Z"}
	var servers []*httptest.Server
	for _, boot := range boots {
		server := httptest.NewServer(liar(always(boot), nil))
		t.Cleanup(server.Close)
		servers = append(servers, server)
	}
	var turn atomic.Int32
	next := func(n int) string { return servers[int(turn.Add(1))%n].Listener.Addr().String() }

	requests := func(n int) *httptest.Server {
		return httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			asked.Add(1)
			r.SetURL(&url.URL{Scheme: "http", Host: next(n)})
		}})
	}
	connections := func(n int) *envoy.Admin {
		return raw(t, func(conn net.Conn) {
			asked.Add(1)
			back, err := net.Dial("tcp", next(n))
			if err != nil {
				return
			}
			defer back.Close()
			go func() { _, _ = io.Copy(back, conn); _ = back.(*net.TCPConn).CloseWrite() }()
			_, _ = io.Copy(conn, back)
		})
	}
	changing := httptest.NewServer(liar(later, nil))
	two, three := requests(2), requests(3)
	for _, s := range []*httptest.Server{changing, two, three} {
		t.Cleanup(s.Close)
	}
	for name, c := range map[string]struct {
		admin *envoy.Admin
		looks int // the observations after which the error must come
	}{
		"each answer from a new process":         {admin(t, changing.URL), 1},
		"a balancer of requests before two":      {admin(t, two.URL), 1},
		"a balancer of requests before three":    {admin(t, three.URL), 1},
		"a balancer of connections before two":   {connections(2), 3},
		"a balancer of connections before three": {connections(3), 4},
	} {
		t.Run(name, func(t *testing.T) {
			asked.Store(0)
			fleet := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{c.admin}})
			var err error
			for range c.looks {
				if _, err = fleet.Begin(t.Context(), nil, nil); err != nil {
					break
				}
			}
			if _, ok := errors.AsType[*envoy.UnstableError](err); !ok || !strings.Contains(err.Error(), "another process answers each time: if this is a load balancer") {
				t.Errorf("%T %v", err, err)
			}
			if n := asked.Load(); n > 40 {
				t.Errorf("it was asked %d times", n)
			}
		})
	}
}

// TestBeginEnds: Begin ends at AckTimeout, even if an Envoy answers each question just in time. Such an Envoy
// counts as one without an answer.
func TestBeginEnds(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	fleet := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{admin(t, server.URL)}, AckTimeout: time.Millisecond})
	wait, err := fleet.Begin(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	outcome := wait.Await(t.Context(), envoy.AwaitOptions{})
	if _, ok := errors.AsType[*envoy.TimeoutError](outcome.Envoys[0].Err); !ok {
		t.Errorf("%+v", outcome)
	}
	if look := fleet.Probe(t.Context(), nil)[0]; !envoy.Unreachable(look.Err) {
		t.Errorf("%+v", look)
	}
}

// TestHostileLog: Refusals reads a log to the end that it had when it was opened, and reads only regular files.
func TestHostileLog(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a log of megabytes")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "envoy.log")
	log := envoy.NewLog(path)
	mark := func() {
		t.Helper()
		if err := log.Mark(); err != nil {
			t.Fatal(err)
		}
	}
	mark()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Refusals(); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe that came since: %v", err)
	}
	if err := log.Mark(); err == nil {
		t.Error("a pipe is a log")
	}
	// A million lines of which none begins an entry.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	mark()
	if err := os.WriteFile(path, []byte("cds: cluster 'b' config rejected: x"+strings.Repeat("\n", 4_000_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := log.Refusals()
	if err != nil || len(got) != 1 || got[0].Message != "x" {
		t.Errorf("%v %.300v", err, got)
	}
	// A very long message.
	if err := os.WriteFile(path, []byte("cds: cluster 'b' config rejected: "+strings.Repeat("x", 1<<20)+"\x1b[2J"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err = log.Refusals(); err != nil || len(got) != 1 || len(got[0].Message) > 5000 || strings.Contains(got[0].Message, "\x1b") {
		t.Errorf("%v %.300v", err, got)
	}
}
