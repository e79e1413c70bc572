package e2e

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"xdspub/tools/envoytest"
)

// TestNodeParamTypo: a server is restarted with a typing error in --node-param, so that no listener is for any
// Envoy of a fleet. The Envoys of each transport keep their listeners, and each view of the server names the fault.
// After the error is corrected, all clients are in sync again.
func TestNodeParamTypo(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	e := newExample(t, "fleet", 8081, 8082, 10000, 10001, 10002)
	e.upstreams(t, "python3 examples/upstream.py eu:8081 us:8082")
	tree, byGRPC, byHTTP := filepath.Join(e.dir, "config"), address(envoytest.FreePort(t)), address(envoytest.FreePort(t))
	serve := func(params ...string) *process {
		t.Helper()
		args := []string{"serve", "--grpc", byGRPC, "--http", byHTTP}
		for _, p := range params {
			args = append(args, "--node-param", p)
		}
		server := start(t, watcher, append(args, tree)...)
		server.WaitLog(t, "event=published ")
		return server
	}
	right := []string{"env=metadata.env", "region=locality.region", "canary=metadata.canary"}
	server := serve(right...)
	prod := []string{"--target", "prod-eu", "--node-locality", "eu", "--node-metadata", "env=prod"}
	canary := []string{"--target", "prod-us-canary", "--node-locality", "us", "--node-metadata", "env=prod", "--node-metadata", "canary=1"}
	test := []string{"--target", "test-eu", "--node-locality", "eu", "--node-metadata", "env=test"}
	envoys := make(map[string]*envoytest.Envoy)
	for _, of := range []struct {
		transport string
		flags     []string
	}{{"delta-ads", prod}, {"ads", canary}, {"rest", test}, {"grpc", prod}, {"delta-grpc", canary}} {
		at := byGRPC
		if of.transport == "rest" {
			at = byHTTP
		}
		args := append([]string{"bootstrap", "envoy", "--transport", of.transport, "--server", at, "--admin", "127.0.0.1:0", "--node-id", of.transport, "--node-cluster", "fleet"}, of.flags...)
		text, stderr, exit := xdspub(t, append(args, tree)...)
		if exit != 0 {
			t.Fatal(stderr)
		}
		envoys[of.transport] = envoytest.Start(t, envoytest.Options{Bootstrap: []byte(text)})
	}
	answers := func() {
		t.Helper()
		for i, want := range []string{"prod", "canary", "test"} {
			e.answers(t, fmt.Sprintf("curl http://127.0.0.1:%d/release", 10000+i), want)
		}
		e.answers(t, "curl http://127.0.0.1:10000/", "eu")
	}
	shows := func(exit int, want ...string) {
		t.Helper()
		envoytest.Eventually(t, patience, strings.Join(want, ", "), func() (bool, string) {
			stdout, stderr, is := xdspub(t, "status", "--serve", byGRPC)
			for _, line := range want {
				if is != exit || !strings.Contains(stdout, line) {
					return false, fmt.Sprint(is, stdout, stderr)
				}
			}
			return true, ""
		})
	}
	restart := func(params ...string) {
		t.Helper()
		server.Signal(t, syscall.SIGTERM)
		server.Wait(t)
		server = serve(params...)
	}
	answers()
	shows(0, "in sync: ", "5 clients")

	restart("env=metadata.envv", "region=locality.region", "canary=metadata.canary")
	var want []string
	for name := range envoys {
		want = append(want, fmt.Sprintf(`  NO VARIANT  LDS: client %q gets no variant of listener "edge"; it keeps what it has`, name))
	}
	shows(1, append(want, "not in sync: 5 of 5 clients")...)
	answers()
	for name, envoy := range envoys {
		for _, removed := range []string{"listener_manager.listener_removed", "cluster_manager.cluster_removed"} {
			if n := envoy.Stat(t, removed); n != 0 {
				t.Errorf("%s: %s is %d", name, removed, n)
			}
		}
	}
	for _, line := range []string{"level=ERROR", "event=client-without-variant", "node=delta-ads", "type=LDS", "missing=edge", `selects="CDS 1, EDS 1"`} {
		if !strings.Contains(server.Log(), line) {
			t.Errorf("the log has no %s:\n%s", line, server.Log())
		}
	}
	if metrics := httpGet(t, "http://"+byHTTP+"/metrics"); !strings.Contains(metrics, `xdspub_clients_without_variant{type="LDS"} 5`) {
		t.Error(metrics)
	}

	restart(right...)
	shows(0, "in sync: ", "5 clients")
	answers()
}

// httpGet returns the body of the answer at a URL, whatever its status.
func httpGet(t *testing.T, url string) string {
	t.Helper()
	response, err := (&http.Client{Timeout: patience}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
