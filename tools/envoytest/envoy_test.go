package envoytest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"xdspub/tools/envoytest"
	"xdspub/tools/sh"
)

// files returns a directory with an empty CDS and LDS file, and a bootstrap for it.
func files(t testing.TB) (dir string, bootstrap []byte) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"cds", "lds"} {
		envoytest.Publish(t, filepath.Join(dir, name, name+".json"), `{"version_info": "v1", "resources": []}`)
	}
	return dir, fmt.Appendf(nil, `
node: {id: test, cluster: test}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources:
  cds_config: {path_config_source: {path: %[1]s/cds/cds.json}}
  lds_config: {path_config_source: {path: %[1]s/lds/lds.json}}
`, dir)
}

// listener answers every request by itself, and differently for one.test.
func listener(port int) string {
	return fmt.Sprintf(`{
		"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": "echo",
		"address": {"socket_address": {"address": "127.0.0.1", "port_value": %d}},
		"filter_chains": [{"filters": [{"name": "hcm", "typed_config": {
			"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
			"stat_prefix": "echo",
			"http_filters": [{"name": "router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}],
			"route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"},
				"direct_response": {"status": 200, "body": {"inline_string": "hello"}}}]},
				{"name": "one", "domains": ["one.test"], "routes": [{"match": {"prefix": "/"},
				"direct_response": {"status": 200, "body": {"inline_string": "hello one"}}}]}]}}}]}]}`, port)
}

func TestStart(t *testing.T) {
	dir, bootstrap := files(t)
	e := envoytest.Start(t, envoytest.Options{Bootstrap: bootstrap, Args: []string{"--drain-time-s", "1"}})

	if got := strings.TrimSpace(e.Admin(t, "/ready")); got != "LIVE" {
		t.Errorf("/ready says %q", got)
	}
	if got := e.Stat(t, "cluster_manager.cds.update_success"); got != 1 {
		t.Errorf("update_success of CDS is %d, want 1", got)
	}
	if got := e.Stat(t, "cluster_manager.cds.update_sucess"); got != -1 {
		t.Errorf("a stat that does not exist is %d, want -1", got)
	}
	if got := e.TextStat(t, "listener_manager.lds.version_text"); got != "v1" {
		t.Errorf("version_text of LDS is %q, want v1", got)
	}
	stats := e.Stats(t, `^cluster_manager\.cds\.`)
	if stats["cluster_manager.cds.version_text"] != "v1" || stats["cluster_manager.cds.update_rejected"] != "0" {
		t.Errorf("stats of CDS: %v", stats)
	}
	if _, ok := stats["cluster_manager.cds.update_duration"]; ok {
		t.Error("a histogram is among the stats")
	}
	if runtime.GOOS == "linux" {
		if got := e.InotifyInstances(t); got != 2 {
			t.Errorf("%d inotify instances, want one for CDS and one for LDS", got)
		}
	}
	if got := e.ConfigDump(t, "dynamic_listeners"); got != nil {
		t.Errorf("listeners before the first: %v", got)
	}
	if got := e.ConfigDump(t, "dynamic_route_configs"); got != nil {
		t.Errorf("routes before the first: %v", got)
	}

	port := envoytest.FreePort(t)
	envoytest.Publish(t, filepath.Join(dir, "lds/lds.json"), fmt.Sprintf(`{"version_info": "v2", "resources": [%s]}`, listener(port)))
	envoytest.Eventually(t, time.Minute, "the listener is there", func() (bool, string) {
		return e.TextStat(t, "listener_manager.lds.version_text") == "v2", fmt.Sprint(e.Stats(t, `\.lds\.`))
	})
	dump := e.ConfigDump(t, "dynamic_listeners")
	if len(dump) != 1 || dump[0]["name"] != "echo" {
		text, _ := json.Marshal(dump)
		t.Errorf("listeners in the config dump: %s", text)
	}
	url := fmt.Sprintf("http://127.0.0.1:%d/", port)
	if status, body, err := envoytest.Get(t, url); status != 200 || body != "hello" || err != nil {
		t.Errorf("GET: %d %q %v", status, body, err)
	}
	if status, body, err := envoytest.GetHost(t, url, "one.test"); status != 200 || body != "hello one" || err != nil {
		t.Errorf("GET with Host one.test: %d %q %v", status, body, err)
	}

	e.AdminPost(t, "/logging?level=warning")
	if log := e.Log(); !strings.Contains(log, "starting main dispatch loop") {
		t.Errorf("the log lacks Envoy's start:\n%s", log)
	}
	e.Stop(t)
	if err := syscall.Kill(e.PID(), 0); err == nil {
		t.Error("the process is still there after Stop")
	}
	e.Stop(t) // of no effect
	if _, _, err := envoytest.Get(t, url); err == nil {
		t.Error("the listener answers after Stop")
	}
}

func TestStartOnUnixAdmin(t *testing.T) {
	// Not under t.TempDir: a socket's path is at most 107 bytes long.
	dir, err := os.MkdirTemp("", "envoytest-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "admin.sock")
	e := envoytest.Start(t, envoytest.Options{
		Bootstrap: fmt.Appendf(nil, `{"admin": {"address": {"pipe": {"path": %q}}}}`, socket),
		Args:      []string{"--concurrency", "2"},
	})
	if got := e.Stat(t, "server.concurrency"); got != 2 {
		t.Errorf("server.concurrency is %d, want 2", got)
	}
	e.Kill(t)
}

func TestRun(t *testing.T) {
	dir, bootstrap := files(t)
	if err := os.Remove(filepath.Join(dir, "cds/cds.json")); err != nil {
		t.Fatal(err)
	}
	code, log := envoytest.Run(t, envoytest.Options{Bootstrap: bootstrap})
	if want := "cds/cds.json' does not exist"; code != 1 || !strings.Contains(log, want) {
		t.Errorf("exit code %d, want 1 and %q in\n%s", code, want, log)
	}
}

func TestWait(t *testing.T) {
	_, bootstrap := files(t)
	e := envoytest.Start(t, envoytest.Options{Bootstrap: bootstrap})
	e.AdminPost(t, "/quitquitquit")
	if state := e.Wait(t); state.ExitCode() != 0 {
		t.Errorf("after /quitquitquit: %v", state)
	}
}

func TestValidate(t *testing.T) {
	const cluster = "static_resources: {clusters: [{name: c, connect_timeout: %s}]}"
	if ok, output := envoytest.Validate(t, fmt.Appendf(nil, cluster, "1s")); !ok {
		t.Errorf("a good bootstrap is refused:\n%s", output)
	}
	ok, output := envoytest.Validate(t, fmt.Appendf(nil, cluster, "soon"))
	if ok || !strings.Contains(output, "static_resources.clusters[0].connect_timeout") {
		t.Errorf("a bad bootstrap: ok %v\n%s", ok, output)
	}
}

func TestUpstream(t *testing.T) {
	u := envoytest.NewUpstream(t, "blue")
	status, body, err := envoytest.Get(t, fmt.Sprintf("http://127.0.0.1:%d/any", u.Port()))
	if status != 200 || body != "blue" || err != nil {
		t.Errorf("GET: %d %q %v", status, body, err)
	}
	if got := u.Requests(); got != 1 {
		t.Errorf("%d requests, want 1", got)
	}
}

func TestFreePort(t *testing.T) {
	var ports []int
	for range 50 {
		ports = append(ports, envoytest.FreePort(t))
	}
	slices.Sort(ports)
	if got := len(slices.Compact(ports)); got != 50 {
		t.Errorf("%d different ports of 50", got)
	}
}

// TestFaults looks at what the harness tells a test that goes wrong.
func TestFaults(t *testing.T) {
	_, bootstrap := files(t)
	// What an Envoy leaves on a full disk, in a folder where nothing can be written.
	noRoom := envoytest.Options{Binary: filepath.Join(t.TempDir(), "no-room")}
	sh.Program(t, noRoom.Binary, `#!/bin/sh
cd "$(dirname "$4")" && ln -s /dev/null/full room && : >"$4" && exec sleep 600
`)
	for _, tt := range []struct {
		name string
		test func(t testing.TB)
		want string
	}{{
		name: "the disk is full",
		test: func(t testing.TB) { envoytest.Start(t, noRoom) },
		want: "Envoy has no room for its admin address",
	}, {
		name: "the disk is full in a trial",
		test: func(t testing.TB) { envoytest.Try(t, noRoom, time.Hour) },
		want: "Envoy has no room for its admin address",
	}, {
		name: "Envoy dies during the test",
		test: func(t testing.TB) {
			e := envoytest.Start(t, envoytest.Options{Bootstrap: bootstrap})
			if err := syscall.Kill(e.PID(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			envoytest.Eventually(t, time.Minute, "it is gone", func() (bool, string) {
				return syscall.Kill(e.PID(), 0) != nil, "there"
			})
		},
		want: "Envoy died during the test: signal: killed",
	}, {
		name: "Envoy ends at start",
		test: func(t testing.TB) {
			envoytest.Start(t, envoytest.Options{Bootstrap: []byte("static_resources: {clusters: [{}]}")})
		},
		want: "Envoy ended before it was LIVE: exit status 1",
	}, {
		name: "the log comes with a failure",
		test: func(t testing.TB) {
			envoytest.Start(t, envoytest.Options{Bootstrap: bootstrap})
			t.Error("a fault of the test's own")
		},
		want: "starting main dispatch loop",
	}, {
		name: "nothing happens",
		test: func(t testing.TB) {
			envoytest.Eventually(t, time.Millisecond, "the moon is full", func() (bool, string) { return false, "half" })
		},
		want: "the moon is full: not within 1ms; last state: half",
	}} {
		t.Run(tt.name, func(t *testing.T) {
			if got := record(t, tt.test); !got.Failed() || !strings.Contains(got.String(), tt.want) {
				t.Errorf("failed %v, and said:\n%s\nwant: %s", got.Failed(), got, tt.want)
			}
		})
	}
}

func TestMissingEnvoy(t *testing.T) {
	script, err := os.ReadFile("../../scripts/envoy")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for name, content := range map[string][]byte{"go.mod": []byte("module m\n"), "scripts/envoy": script, "pkg/deep/x.go": nil} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(root, "pkg/deep"))
	const want = "THE REAL ENVOY IS MISSING"
	for _, tt := range []struct {
		ci, require string
		skipped     bool
	}{
		{skipped: true},
		{ci: "true"},
		{require: "1"},
	} {
		t.Run(fmt.Sprintf("CI=%s,require=%s", tt.ci, tt.require), func(t *testing.T) {
			t.Setenv("XDSPUB_ENVOY", "")
			t.Setenv("CI", tt.ci)
			t.Setenv("XDSPUB_REQUIRE_ENVOY", tt.require)
			got := record(t, func(t testing.TB) { envoytest.Binary(t) })
			if got.skipped != tt.skipped || got.Failed() == tt.skipped || !strings.Contains(got.String(), want) {
				t.Errorf("skipped %v, failed %v, and said:\n%s", got.skipped, got.Failed(), got)
			}
		})
	}
	t.Run("XDSPUB_ENVOY", func(t *testing.T) {
		own := filepath.Join(root, "scripts/envoy") // any executable
		t.Setenv("XDSPUB_ENVOY", own)
		if got := envoytest.Binary(t); got != own {
			t.Errorf("Binary is %q, want %q", got, own)
		}
	})
}
