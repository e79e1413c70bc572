package e2e

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"xdspub/tools/envoytest"
)

// wasmCode is the smallest Wasm module that Envoy accepts as a plugin: a memory, malloc, and the
// function whose name is the version of the ABI.
const wasmCode = "\x00asm\x01\x00\x00\x00" + "\x01\x09\x02\x60\x00\x00\x60\x01\x7f\x01\x7f" + "\x03\x03\x02\x00\x01" + "\x05\x03\x01\x00\x01" +
	"\x07\x2d\x03\x17proxy_abi_version_0_2_1\x00\x00\x06malloc\x00\x01\x06memory\x02\x00" + "\x0a\x09\x02\x02\x00\x0b\x04\x00\x41\x00\x0b"

func wasm(*testing.T) string { return wasmCode }

func noModule(t *testing.T) string { return "no module: " + t.TempDir() }

// dynamicModule returns a dynamic module that Envoy accepts. Its bytes differ in each test, because Envoy keeps
// fetched modules.
func dynamicModule(t *testing.T) string {
	t.Helper()
	compiler, err := exec.LookPath("cc")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no C compiler: ", err)
		}
		t.Skip("NOT TESTED, needs a C compiler: ", err)
	}
	file := filepath.Join(t.TempDir(), "module.so")
	if out, err := exec.Command(compiler, "-shared", "-fPIC", "-o", file, filepath.Join("testdata", "module.c")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(code) + t.TempDir()
}

// codeServer serves code, and answers 503 to the first requests.
type codeServer struct {
	port     int
	code     string
	requests atomic.Int64
}

func newCodeServer(t *testing.T, code string, missing int64) *codeServer {
	t.Helper()
	c := &codeServer{code: code}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if c.requests.Add(1) <= missing {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, code)
	}))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if c.port, err = strconv.Atoi(at.Port()); err != nil {
		t.Fatal(err)
	}
	return c
}

// remote returns the data source of the code, which the cluster code serves.
func (c *codeServer) remote() string {
	return fmt.Sprintf("{remote: {http_uri: {uri: http://code/, cluster: code, timeout: 1s}, sha256: %x}}", sha256.Sum256([]byte(c.code)))
}

// wasm returns an HTTP filter of Wasm code, which Envoy rejects until it has fetched the code.
func (c *codeServer) wasm() string {
	return `{name: plugin, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm, config: {name: plugin, vm_config: {runtime: envoy.wasm.runtime.v8, nack_on_code_cache_miss: true, code: ` + c.remote() + `}}}}`
}

// module returns an HTTP filter of a dynamic module, which Envoy rejects until it has fetched the module.
func (c *codeServer) module(t *testing.T) string {
	t.Cleanup(func() { // Envoy keeps the module there
		os.Remove(fmt.Sprintf("/tmp/envoy_dynamic_module_%x.so", sha256.Sum256([]byte(c.code))))
	})
	return `{name: module, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter, filter_name: module, dynamic_module_config: {nack_on_cache_miss: true, module: ` + c.remote() + `}}}`
}

// fetching is a listener with a filter that Envoy rejects until it has fetched the code of the filter.
type fetching struct {
	edge   int    // the port of the listener
	filter string // of the code
	tree   func(filters string) string
}

// newFetching returns a listener with a filter of a dynamic module or of Wasm code. The server of the code answers
// 503 to the first requests; missing is their number.
func newFetching(t *testing.T, code string, missing int64, module bool) *fetching {
	t.Helper()
	web, from := envoytest.NewUpstream(t, "web"), newCodeServer(t, code, missing)
	f := &fetching{edge: envoytest.FreePort(t), filter: from.wasm()}
	if module {
		f.filter = from.module(t)
	}
	f.tree = func(filters string) string {
		return documents(staticCluster("web", web.Port()), staticCluster("code", from.port),
			listener("edge", f.edge, "route_config: {"+hosts("web")+"}", "http_filters: ["+filters+router+"]"))
	}
	return f
}

// TestRetried has Envoy reject a listener until Envoy has fetched the code of a filter. Envoy does not read the
// file again by itself. The watch publishes the file again, until Envoy accepts it, or rejects it for a permanent
// reason, or until --ack-timeout is over.
func TestRetried(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		code    func(*testing.T) string
		missing int64 // requests without an answer
		module  bool
		args    []string
		retries int // 0: some
		ends    string
	}{
		{name: "wasm that comes late", code: wasm, missing: 1, ends: "event=published "},
		{name: "wasm that never comes", code: wasm, missing: 1 << 40, args: []string{"--ack-timeout", "2s"}, retries: 2, ends: "event=rolled-back "},
		{name: "module that comes late", code: dynamicModule, module: true, missing: 1, ends: "event=published "},
		{name: "module that is none", code: noModule, module: true, retries: 1, ends: "event=rolled-back "},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			envoytest.Binary(t)
			f := newFetching(t, test.code(t), test.missing, test.module)
			s := newFixture(t, map[string]string{"edge.yaml": f.tree("")})
			s.args = append(append(s.args, confirmed(s.admin)...), test.args...)
			s.startWatch(t)
			s.startEnvoy(t)
			s.took(t)
			s.write(t, "edge.yaml", f.tree(f.filter+", "))
			line := s.watch.WaitLog(t, "event=step-retried step=listeners ")
			if !strings.Contains(line, "edge") {
				t.Errorf("no reason in %s", line)
			}
			if test.missing > 1 { // Envoy continues to reject the file
				stdout, stderr, exit := xdspub(t, "status", "--out", s.out)
				if exit == 0 || !strings.Contains(stdout, "a change is under way") || !strings.Contains(stdout, "retrying: step listeners: ") || !strings.Contains(stdout, "Unable to create Wasm plugin") {
					t.Errorf("status while the step is retried: exit status %d\n%s%s", exit, stdout, stderr)
				}
			}
			end := s.watch.WaitMatch(t, regexp.MustCompile("event=(published|rolled-back) "))
			log := s.watch.Log()
			retries := strings.Count(log, "event=step-retried ")
			if test.retries > 0 && retries != test.retries {
				t.Errorf("offered %d times again, want %d", retries, test.retries)
			}
			if !strings.Contains(end, test.ends) {
				t.Errorf("the change ends with %s, want %s", end, test.ends)
			}
			// Each rename is one attempt of Envoy, and one more rejection: Envoy adds none by itself.
			if got := s.envoy.Stat(t, "listener_manager.lds.update_rejected"); test.missing > 0 && int(got) != retries+strings.Count(end, "event=rolled-back ") {
				t.Errorf("rejected %v times, after %d retries", got, retries)
			}
			becomes(t, "the page", "200 web", func() string { return ask(t, request{port: f.edge}).text })
		})
	}
}

// TestServedRetried has Envoys of each transport reject a listener until they have fetched the code of a filter.
// The server sends the listener again, until the Envoy accepts it, or rejects it for a permanent reason, or until
// the ack timeout is over. Only then does the rejection count for the quorum.
func TestServedRetried(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		code    func(*testing.T) string
		missing int64 // requests without an answer
		module  bool
		ends    string
	}{
		{name: "wasm that comes late", code: wasm, missing: 1, ends: "event=snapshot-confirmed "},
		{name: "wasm that never comes", code: wasm, missing: 1 << 40, ends: "event=snapshot-refused "},
		{name: "module that comes late", code: dynamicModule, module: true, missing: 1, ends: "event=snapshot-confirmed "},
		{name: "module that is none", code: noModule, module: true, ends: "event=snapshot-refused "},
	} {
		for _, k := range transports {
			t.Run(test.name+", "+k.name, func(t *testing.T) {
				t.Parallel()
				envoytest.Binary(t)
				f := newFetching(t, test.code(t), test.missing, test.module)
				s := serveTree(t, map[string]string{"edge.yaml": f.tree("")})
				s.admin = envoytest.FreePort(t)
				s.out = t.TempDir()
				s.start(t, "--grpc", "unix:"+s.socket, "--ack-quorum", "all", "--ack-timeout", "4s")
				envoytest.Start(t, envoytest.Options{Bootstrap: s.served(t, s.bootstrap(t), k)})
				s.synced(t)
				s.write(t, "edge.yaml", f.tree(f.filter+", "))
				if line := s.server.WaitLog(t, "event=response-retried "); !strings.Contains(line, "edge") {
					t.Errorf("no reason in %s", line)
				}
				if test.missing > 1 { // Envoy continues to reject the listener
					stdout, stderr, exit := xdspub(t, "status", "--serve", "unix:"+s.socket)
					if exit == 0 || !strings.Contains(stdout, "RETRYING") || !strings.Contains(stdout, "Unable to create Wasm plugin") {
						t.Errorf("status while the listener is retried: exit status %d\n%s%s", exit, stdout, stderr)
					}
				}
				end := s.server.WaitMatch(t, regexp.MustCompile("event=snapshot-(confirmed|refused|unconfirmed) .*"))
				if !strings.Contains(end, test.ends) {
					t.Errorf("the change ends with %s, want %s\n%s", end, test.ends, s.server.Log())
				}
				becomes(t, "the page", "200 web", func() string { return ask(t, request{port: f.edge}).text })
			})
		}
	}
}
