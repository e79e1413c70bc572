package e2e

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/tools/envoytest"
)

// TestFleet: one tree for Envoys of two environments, two regions and a canary, by files and by serve. An edit of a
// variant changes only the Envoys that have the variant.
func TestFleet(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	e := newExample(t, "fleet", 8081, 8082, 9901, 9902, 9903, 10000, 10001, 10002, 18000)
	const render = "bin/xdspub render --out /tmp/fleet examples/fleet/config"
	kinds := []string{"prod-eu", "prod-us-canary", "test-eu"}
	answers := func(path string, want ...string) {
		t.Helper()
		for i, is := range want {
			e.answers(t, fmt.Sprintf("curl http://127.0.0.1:%d/%s", 10000+i, path), is)
		}
	}
	envoys := func(suffix string, bootstraps ...string) map[string]*envoytest.Envoy {
		t.Helper()
		all := make(map[string]*envoytest.Envoy)
		for i, kind := range kinds {
			path := "/tmp/" + kind + suffix + ".yaml"
			e.run(t, "bin/xdspub bootstrap envoy "+bootstraps[i]+" examples/fleet/config > "+path)
			all[kind] = e.envoy(t, `"$(scripts/envoy)" --config-path `+path)
		}
		return all
	}
	e.upstreams(t, "python3 examples/upstream.py eu:8081 us:8082")
	e.line(t, "go build -o bin/ ./cmd/xdspub")
	e.run(t, "bin/xdspub validate --variants examples/fleet/config")

	e.run(t, render)
	read := envoys("",
		"--out /tmp/fleet --target prod-eu --admin 127.0.0.1:9901 --node-id prod-eu-1 --node-cluster fleet",
		"--out /tmp/fleet --target prod-us-canary --admin 127.0.0.1:9902 --node-id prod-us-1 --node-cluster fleet",
		"--out /tmp/fleet --target test-eu --admin 127.0.0.1:9903 --node-id test-eu-1 --node-cluster fleet")
	answers("release", "prod", "canary", "test")
	answers("", "eu", "us", "eu")
	folders := make(map[string]string)
	for _, kind := range []string{"prod-eu", "prod-us", "prod-us-canary", "test-eu", "test-us"} {
		folders[kind] = (&fixture{out: e.moved.Replace("/tmp/fleet/" + kind)}).published(t)
	}
	e.edit(t, replace(`"canary\n"`, `"next\n"`), "config/prod/canary/routes.yaml")
	e.run(t, render)
	answers("release", "prod", "next", "test")
	for kind, before := range folders {
		now := (&fixture{out: e.moved.Replace("/tmp/fleet/" + kind)}).published(t)
		if changed := now != before; changed != (kind == "prod-us-canary") {
			t.Errorf("the edit of the canary, in the folder of %s:\n%s", kind, cmp.Diff(before, now))
		}
	}
	for _, envoy := range read {
		content(t, envoy)
		envoy.Stop(t)
	}

	server := e.start(t, "bin/xdspub serve --grpc 127.0.0.1:18000 examples/fleet/config")
	server.WaitLog(t, "event=published ")
	served := envoys("-served",
		"--transport delta-ads --server 127.0.0.1:18000 --target prod-eu --admin 127.0.0.1:9901 --node-id prod-eu-1 --node-cluster fleet --node-metadata env=prod --node-locality eu",
		"--transport delta-ads --server 127.0.0.1:18000 --target prod-us-canary --admin 127.0.0.1:9902 --node-id prod-us-1 --node-cluster fleet --node-metadata env=prod --node-metadata canary=1 --node-locality us",
		"--transport delta-ads --server 127.0.0.1:18000 --target test-eu --admin 127.0.0.1:9903 --node-id test-eu-1 --node-cluster fleet --node-metadata env=test --node-locality eu")
	answers("release", "prod", "next", "test")
	answers("", "eu", "us", "eu")
	updates := func(kind string) map[string]string { return served[kind].Stats(t, "update_success$") }
	before := map[string]map[string]string{"prod-eu": updates("prod-eu"), "test-eu": updates("test-eu")}
	e.edit(t, replace(e.moved.Replace("8082"), e.moved.Replace("8081")), "config/regions/us.yaml")
	answers("", "eu", "eu", "eu")
	for kind, was := range before {
		if diff := cmp.Diff(was, updates(kind)); diff != "" {
			t.Errorf("the edit of the endpoints in us reached %s (-before +after):\n%s", kind, diff)
		}
	}
	for _, envoy := range served {
		content(t, envoy)
	}
	e.allDone(t)
}
