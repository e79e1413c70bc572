package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sigs.k8s.io/yaml"

	"xdspub/tools/envoytest"
	"xdspub/tools/etcdtest"
)

// file returns a file of the copy.
func (e *example) file(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(e.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// decodeYAML reads the part of a YAML file that into has fields for.
func decodeYAML(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// The binary file of the example multi, its source, and the command that makes it.
const (
	oldURLs        = "platform/old-urls/old-urls.pb"
	oldURLList     = "platform/old-urls/list.yaml"
	convertOldURLs = "bin/xdspub convert --to pb --output examples/multi/platform/old-urls/old-urls.pb examples/multi/platform/old-urls/list.yaml"
)

func TestMulti(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	e := newExample(t, "multi", 8081, 8082, 8083, 8084, 8085, 9901, 10000, 10001)
	const (
		catalog = "curl -H 'Host: catalog.example.com' http://127.0.0.1:10000/"
		cart    = "curl -H 'Host: cart.example.com' http://127.0.0.1:10000/"
		search  = "curl -H 'Host: search.example.com' http://127.0.0.1:10000/"
		old     = "curl -H 'Host: www.example.com' http://127.0.0.1:10000/basket.php"
		inside  = "curl http://127.0.0.1:10001/search"
	)
	e.upstreams(t, "python3 examples/upstream.py catalog:8081 cart:8082 cart-canary:8083 search:8084 search:8085")
	e.line(t, "go build -o bin/ ./cmd/xdspub")
	e.run(t, "bin/xdspub validate examples/multi")
	watch := e.start(t, "bin/xdspub watch --out /tmp/multi examples/multi")
	watch.WaitLog(t, "event=published ")
	e.run(t, "bin/xdspub bootstrap envoy --out /tmp/multi --admin 127.0.0.1:9901 --node-id multi-1 --node-cluster multi > /tmp/multi-envoy.yaml")
	live := e.envoy(t, `"$(scripts/envoy)" --config-path /tmp/multi-envoy.yaml`)
	e.answers(t, catalog, "catalog")
	e.answers(t, cart, "cart")
	e.answers(t, search, "search")
	e.answers(t, old, "cart")
	e.answers(t, inside, "search")

	// The edit of the README.
	e.edit(t, replace("cart: 0", "cart: 100"), "platform/edge/runtime.yaml")
	if line := watch.WaitLog(t, "event=published "); !strings.Contains(line, "written=1 ") {
		t.Errorf("the switch wrote more than one file: %s", line)
	}
	e.answers(t, cart, "cart-canary")

	edge, err := strconv.Atoi(e.moved.Replace("10000"))
	if err != nil {
		t.Fatal(err)
	}
	policy := func() string { return ask(t, request{port: edge}).header.Get("Referrer-Policy") }
	becomes(t, "the header by ECDS", "strict-origin-when-cross-origin", policy)
	e.edit(t, replace("strict-origin-when-cross-origin", "no-referrer"), "platform/edge/security-headers.json")
	becomes(t, "the header by ECDS", "no-referrer", policy)

	gone := e.moved.Replace("127.0.0.1:8085")
	e.edit(t, func(s string) string { return s[:strings.LastIndex(s, "\nendpoints {")+1] }, "teams/search/endpoints.txtpb")
	envoytest.Eventually(t, patience, "the endpoint is gone", func() (bool, string) {
		clusters := live.Admin(t, "/clusters")
		return !strings.Contains(clusters, gone), clusters
	})
	e.curl(t, search, "search")

	e.edit(t, replace("{path: /basket.php}, route: {cluster: cart,", "{path: /basket.php}, route: {cluster: catalog,"), oldURLList)
	e.run(t, convertOldURLs)
	e.answers(t, old, "catalog")

	e.edit(t, replace("search.example.com", "cart.example.com"), "teams/search/host.yaml")
	line := watch.WaitLog(t, "duplicate-domain")
	for _, place := range []string{"teams/cart/host.yaml:", "teams/search/host.yaml:"} {
		if !strings.Contains(line, place) {
			t.Errorf("the finding does not name %s: %s", place, line)
		}
	}
	watch.WaitLog(t, "event=source-invalid ")
	e.curl(t, search, "search")
	content(t, live)
	e.line(t, "bin/xdspub convert --to yaml examples/multi/platform/old-urls/old-urls.pb") // by TestMultiBinary
	e.allDone(t)
}

// TestMultiBinary: the binary file of the example equals the conversion of its list, byte for byte. The checks of
// its CI find a binary file that does not.
func TestMultiBinary(t *testing.T) {
	t.Parallel()
	e := newExample(t, "multi")
	original := e.file(t, oldURLs)
	if err := os.Remove(filepath.Join(e.dir, oldURLs)); err != nil {
		t.Fatal(err)
	}
	e.run(t, convertOldURLs)
	if !bytes.Equal(e.file(t, oldURLs), original) {
		t.Errorf("%s is not what its list makes: run %s", oldURLs, convertOldURLs)
	}

	var ci struct{ Xdspub struct{ Script []string } }
	decodeYAML(t, e.file(t, "ci/xdspub.gitlab-ci.yml"), &ci)
	check := func(line string) int {
		_, _, exit := run(t, "/bin/sh", "-c", fmt.Sprintf("cd '%s' && PATH='%s':$PATH && %s", e.dir, filepath.Dir(binary), line))
		return exit
	}
	if len(ci.Xdspub.Script) != 2 {
		t.Fatalf("the checks of CI are %q", ci.Xdspub.Script)
	}
	for _, line := range ci.Xdspub.Script {
		if exit := check(line); exit != 0 {
			t.Errorf("%s: exit status %d", line, exit)
		}
	}
	e.edit(t, replace("/basket.php", "/warenkorb.php"), oldURLList)
	if exit := check(ci.Xdspub.Script[1]); exit == 0 {
		t.Errorf("%s does not see that the list has changed", ci.Xdspub.Script[1])
	}
	e.run(t, convertOldURLs)
	if exit := check(ci.Xdspub.Script[1]); exit != 0 {
		t.Errorf("%s: exit status %d", ci.Xdspub.Script[1], exit)
	}
	if text := e.run(t, "bin/xdspub convert --to yaml examples/multi/platform/old-urls/old-urls.pb"); !strings.Contains(text, "/warenkorb.php") {
		t.Errorf("the binary file in words:\n%s", text)
	}

	// Envoy would apply the rest of the file.
	envoytest.Publish(t, filepath.Join(e.dir, oldURLs), string(original[:len(original)-1]))
	if stdout, _, exit := xdspub(t, "validate", e.dir); exit != 1 || !strings.Contains(stdout, "old-urls.pb: error:") {
		t.Errorf("a file that lacks its last byte: exit status %d, want 1\n%s", exit, stdout)
	}
}

func TestKubernetes(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	e := newExample(t, "kubernetes", 8081, 9900, 9901, 10000)
	const (
		mount = "go run ./examples/kubernetes/mount examples/kubernetes/config /tmp/kubernetes/config"
		envoy = `"$(scripts/envoy)" --config-path /tmp/kubernetes/envoy.yaml`
		curl  = "curl http://127.0.0.1:10000/"
	)
	// The commands of the README are those of the manifest, with other paths.
	var manifest struct {
		Spec struct{ Template struct{ Spec podSpec } }
	}
	original, err := os.ReadFile(filepath.Join(root, "examples/kubernetes/deployment.yaml")) // with the ports of the README
	if err != nil {
		t.Fatal(err)
	}
	decodeYAML(t, original, &manifest)
	command := func(containers []container) string {
		t.Helper()
		if len(containers) == 0 || containers[0].Image != "xdspub:local" {
			t.Fatalf("the first container is not xdspub's: %+v", containers)
		}
		here := strings.NewReplacer("/config", "/tmp/kubernetes/config", "/out", "/tmp/kubernetes/out", "/xds", "/tmp/kubernetes/xds")
		return "bin/xdspub " + here.Replace(strings.Join(containers[0].Args, " "))
	}
	bootstrap := e.file(t, "envoy.yaml")
	e.run(t, "bin/xdspub bootstrap envoy --out /out --envoy-path /xds --admin 127.0.0.1:9901 --node-id shop --node-cluster shop > examples/kubernetes/envoy.yaml")
	if now := e.file(t, "envoy.yaml"); !bytes.Equal(bootstrap, now) {
		t.Errorf("the command of the README makes another envoy.yaml:\n%s", now)
	}

	e.upstreams(t, "python3 examples/upstream.py shop:8081")
	e.run(t, mount)
	e.run(t, "ls -la /tmp/kubernetes/config")
	e.line(t, "go build -o bin/ ./cmd/xdspub")
	e.run(t, "bin/xdspub validate examples/kubernetes/config")
	e.run(t, "ln -s out /tmp/kubernetes/xds")
	e.run(t, command(manifest.Spec.Template.Spec.InitContainers))
	watch := e.start(t, command(manifest.Spec.Template.Spec.Containers))
	watch.WaitLog(t, "event=published ")
	e.run(t, "bin/xdspub bootstrap envoy --out /tmp/kubernetes/out --admin 127.0.0.1:9901 --node-id shop --node-cluster shop > /tmp/kubernetes/envoy.yaml")
	live := e.envoy(t, envoy)
	e.answers(t, curl, "shop")

	const open, closed = "route: {cluster: shop}", `direct_response: {status: 503, body: {inline_string: "closed\n"}}`
	if !strings.Contains(e.readme, closed) {
		t.Errorf("the README does not tell to write %s", closed)
	}
	e.edit(t, replace(open, closed), "config/routes.yaml")
	e.run(t, mount)
	e.answers(t, curl, "closed")

	// A key is removed and another is added: for a moment, a link has no target.
	config := filepath.Join(e.dir, "config")
	if err := os.Rename(filepath.Join(config, "routes.yaml"), filepath.Join(config, "site.yaml")); err != nil {
		t.Fatal(err)
	}
	e.edit(t, replace(closed, open), "config/site.yaml")
	e.run(t, mount)
	e.answers(t, curl, "shop")

	out := &fixture{out: e.moved.Replace("/tmp/kubernetes/out")}
	published, stats := out.published(t), live.Stats(t, "update_attempt")
	e.edit(t, replace("cluster: shop", "cluster: nope"), "config/site.yaml")
	e.run(t, mount)
	watch.WaitLog(t, "unresolved-reference")
	watch.WaitLog(t, "event=source-invalid ")
	e.curl(t, curl, "shop")
	if now := out.published(t); now != published {
		t.Errorf("a bad ConfigMap has changed what is out:\n%s\nwas:\n%s", now, published)
	}
	if now := live.Stats(t, "update_attempt"); fmt.Sprint(now) != fmt.Sprint(stats) {
		t.Errorf("a bad ConfigMap has reached Envoy: %v, was %v", now, stats)
	}
	content(t, live)
	live.Stop(t)
	live = e.envoy(t, envoy)
	e.answers(t, curl, "shop")
	content(t, live)
	e.allDone(t)
}

// podSpec is the part of a PodSpec that the test needs.
type podSpec struct {
	InitContainers, Containers []container
}

type container struct {
	Image string
	Args  []string
}

// TestLegacy: Envoy first reads the files of the example itself, and then the published files.
func TestLegacy(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	e := newExample(t, "legacy", 8081, 8082, 8083, 9901, 10000)
	const (
		home     = "curl http://127.0.0.1:10000/"
		shop     = "curl http://127.0.0.1:10000/shop"
		validate = "bin/xdspub validate examples/legacy/config"
	)
	e.upstreams(t, "python3 examples/upstream.py website:8081 shop:8082 shop-new:8083")
	live := e.envoy(t, `"$(scripts/envoy)" --config-path examples/legacy/envoy.yaml`)
	e.answers(t, home, "website")
	e.answers(t, shop, "shop")
	e.line(t, "go build -o bin/ ./cmd/xdspub")
	e.run(t, validate)

	// Faults that Envoy accepts, and the findings of xdspub.
	stat := func(name, want string) func() (bool, string) {
		return func() (bool, string) {
			got := fmt.Sprint(live.Stat(t, name))
			return got == want, name + " is " + got
		}
	}
	shopAnswers := func(status string) func() (bool, string) {
		return func() (bool, string) {
			_, state := e.ask(t, shop)
			return strings.HasPrefix(state, status), state
		}
	}
	dash, noDash := "  - filters:\n    - name: envoy", "  - filters:\n      name: envoy"
	for _, tt := range []struct {
		file, old, text string
		taken           func() (bool, string)
		says            string
		exit            int // of validate
	}{
		{"cds.yaml", "LEAST_REQUEST", "LEAST_REQEUST", stat("server.dynamic_unknown_fields", "1"), "did you mean LEAST_REQUEST?", 1},
		{"rds.yaml", "cluster: shop\n", "cluster: shopp\n", shopAnswers("503 "), `did you mean "shop"?`, 1},
		{"lds.yaml", dash, noDash, stat("listener_manager.lds.update_success", "2"), "filters must be a list", 0},
	} {
		file := "config/" + tt.file
		e.edit(t, replace(tt.old, tt.text), file)
		envoytest.Eventually(t, patience, "Envoy takes "+tt.text, tt.taken)
		if ok, output := envoytest.Validate(t, e.file(t, "envoy.yaml")); !ok {
			t.Errorf("envoy --mode validate refuses %s:\n%s", tt.text, output)
		}
		if stdout, _, exit := run(t, "/bin/sh", "-c", e.line(t, validate)); exit != tt.exit || !strings.Contains(stdout, tt.file+":") || !strings.Contains(stdout, tt.says) {
			t.Errorf("%s: exit status %d, want %d and %q\n%s", tt.text, exit, tt.exit, tt.says, stdout)
		}
		e.edit(t, replace(tt.text, tt.old), file)
		e.answers(t, shop, "shop")
	}
	if n := live.Stat(t, "listener_manager.lds.update_rejected"); n != 0 {
		t.Errorf("Envoy refuses filters without a dash")
	}
	live.Stop(t)

	watch := e.start(t, "bin/xdspub watch --out /tmp/legacy examples/legacy/config")
	watch.WaitLog(t, "event=published ")
	e.run(t, "bin/xdspub bootstrap envoy --out /tmp/legacy --admin 127.0.0.1:9901 --node-id test-id --node-cluster test-cluster > /tmp/legacy-envoy.yaml")
	live = e.envoy(t, `"$(scripts/envoy)" --config-path /tmp/legacy-envoy.yaml`)
	e.answers(t, home, "website")
	e.answers(t, shop, "shop")
	out := &fixture{out: e.moved.Replace("/tmp/legacy"), format: "json", envoy: live}
	out.took(t, unread["legacy"]...)

	// Envoy still reads the routes itself, and accepts routes that xdspub refuses.
	good, bad := "cluster: shop\n", "cluster: shopp\n"
	e.edit(t, replace(good, bad), "config/rds.yaml")
	watch.WaitLog(t, "event=source-invalid ")
	envoytest.Eventually(t, patience, "Envoy has it already", shopAnswers("503 "))
	e.edit(t, replace(bad, good), "config/rds.yaml")
	watch.WaitLog(t, "event=source-valid")
	e.answers(t, shop, "shop")

	// With one line changed in each file, the resources come from the tree.
	here := func(s string) string {
		return regexp.MustCompile(`path_config_source: .*`).ReplaceAllString(s, "ads: {}")
	}
	for _, name := range []string{"config/cds.yaml", "config/lds.yaml"} {
		e.edit(t, here, name)
		watch.WaitLog(t, "event=published ")
		e.answers(t, home, "website")
		e.answers(t, shop, "shop")
	}
	out.took(t)
	e.edit(t, replace(good, bad), "config/rds.yaml")
	watch.WaitLog(t, "event=source-invalid ")
	e.curl(t, shop, "shop")
	e.edit(t, replace(bad, good), "config/rds.yaml")
	watch.WaitLog(t, "event=source-valid")
	e.edit(t, replace(e.moved.Replace("8082"), e.moved.Replace("8083")), "config/eds.yaml")
	e.answers(t, shop, "shop-new")
	content(t, live)
	e.allDone(t)
}

// TestADS: the example in which an Envoy gets its resources by ADS.
func TestADS(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	e := newExample(t, "ads", 8081, 8082, 9901, 10000, 18000)
	const (
		serve = "bin/xdspub serve --grpc 127.0.0.1:18000 examples/ads/config"
		curl  = "curl http://127.0.0.1:10000/"
	)
	e.upstreams(t, "python3 examples/upstream.py shop:8081 shop-new:8082")
	e.line(t, "go build -o bin/ ./cmd/xdspub")
	e.run(t, "bin/xdspub validate examples/ads/config")
	server := e.start(t, serve)
	server.WaitLog(t, "event=published ")
	e.run(t, "bin/xdspub bootstrap envoy --transport delta-ads --server 127.0.0.1:18000 --admin 127.0.0.1:9901 --node-id edge-1 --node-cluster edge examples/ads/config > /tmp/ads-envoy.yaml")
	live := e.envoy(t, `"$(scripts/envoy)" --config-path /tmp/ads-envoy.yaml`)
	e.answers(t, curl, "shop")

	// The edits of the README.
	e.edit(t, replace(e.moved.Replace("8081"), e.moved.Replace("8082")), "config/shop.yaml")
	e.answers(t, curl, "shop-new")
	e.edit(t, replace("cluster: shop", "cluster: nope"), "config/routes.yaml")
	server.WaitLog(t, "unresolved-reference")
	server.WaitLog(t, "event=source-invalid ")
	e.curl(t, curl, "shop-new")
	e.edit(t, replace("cluster: nope", "cluster: shop"), "config/routes.yaml")
	server.WaitLog(t, "event=source-valid")
	content(t, live)
	server.Signal(t, syscall.SIGTERM)
	server.Wait(t)
	e.curl(t, curl, "shop-new")
	e.edit(t, replace(e.moved.Replace("8082"), e.moved.Replace("8081")), "config/shop.yaml")
	e.start(t, serve)
	e.answers(t, curl, "shop")
	e.allDone(t)
}

// TestLastKnownGoodExample: the example in which an Envoy starts without its control plane.
func TestLastKnownGoodExample(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	e := newExample(t, "last-known-good", 8081, 9901, 10000, 18000)
	const (
		serve = "bin/xdspub serve --grpc 127.0.0.1:18000 examples/last-known-good/config"
		watch = "bin/xdspub watch --out /tmp/last-known-good --node-id edge-1 --node-cluster edge xds://127.0.0.1:18000"
		envoy = `"$(scripts/envoy)" --config-path /tmp/last-known-good-envoy.yaml`
		curl  = "curl http://127.0.0.1:10000/"
	)
	e.upstreams(t, "python3 examples/upstream.py shop:8081")
	e.line(t, "go build -o bin/ ./cmd/xdspub")
	plane := e.start(t, serve)
	plane.WaitLog(t, "event=published ")
	machine := e.start(t, watch)
	machine.WaitLog(t, "event=published ")
	e.run(t, "bin/xdspub bootstrap envoy --out /tmp/last-known-good --admin 127.0.0.1:9901 --node-id edge-1 --node-cluster edge > /tmp/last-known-good-envoy.yaml")
	live := e.envoy(t, envoy)
	e.answers(t, curl, "shop")

	plane.Signal(t, syscall.SIGTERM)
	plane.Wait(t)
	machine.WaitLog(t, "event=upstream-lost ")
	machine.Signal(t, syscall.SIGTERM)
	machine.Wait(t)
	live.Stop(t)
	e.envoy(t, envoy)
	e.answers(t, curl, "shop")
	machine = e.start(t, watch)
	machine.WaitLog(t, "event=failed ")
	e.start(t, serve)
	machine.WaitLog(t, "event=recovered ")
	e.curl(t, curl, "shop")
	e.allDone(t)
}

// TestGRPCClientsExample: the example of gRPC clients without a proxy.
func TestGRPCClientsExample(t *testing.T) {
	t.Parallel()
	e := newExample(t, "grpc-clients", 8081, 8082, 18000)
	const client = "GRPC_XDS_BOOTSTRAP=/tmp/grpc.json bin/client xds:///greeter"
	if err := install(); err != nil {
		t.Fatal(err)
	}
	e.run(t, "go build -o bin/ ./cmd/xdspub ./examples/grpc-clients/backend ./examples/grpc-clients/client")
	e.start(t, "bin/backend blue:8081 green:8082").WaitLog(t, "green ")
	e.run(t, "bin/xdspub validate --profile grpc examples/grpc-clients/config")
	server := e.start(t, "bin/xdspub serve --profile grpc --grpc 127.0.0.1:18000 examples/grpc-clients/config")
	server.WaitLog(t, "event=published ")
	e.run(t, "bin/xdspub bootstrap grpc --server 127.0.0.1:18000 --node-id client-1 --output /tmp/grpc.json")
	resolved := e.run(t, "GRPC_XDS_BOOTSTRAP=/tmp/grpc.json bin/xdspub bootstrap grpc --resolve xds:///greeter examples/grpc-clients/config")
	if !strings.Contains(resolved, "config/greeter.yaml:2:1\n") {
		t.Errorf("the client asks for\n%s", resolved)
	}
	answers := func(want string) {
		t.Helper()
		if got := e.run(t, client); got != want+"\n" {
			t.Errorf("the client prints %q, want %q", got, want)
		}
	}
	answers("blue")
	e.edit(t, replace(e.moved.Replace("8081"), e.moved.Replace("8082")), "config/greeter.yaml")
	server.WaitLog(t, "event=published ")
	answers("green")
	e.edit(t, replace("route: {cluster: greeter}", "route: {cluster: nope}"), "config/greeter.yaml")
	server.WaitLog(t, "unresolved-reference")
	server.WaitLog(t, "event=source-invalid ")
	answers("green")
	e.allDone(t)
}

// TestFleetEtcdExample: the example of a fleet on etcd.
func TestFleetEtcdExample(t *testing.T) {
	envoytest.Binary(t)
	etcdtest.Binary(t)
	t.Parallel()
	e := newExample(t, "fleet-etcd", 2379, 8081, 9901, 10000, 18000)
	const (
		etcd   = `"$(scripts/etcd)" --data-dir /tmp/fleet-etcd/etcd --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:0`
		files  = "bin/xdspub watch --out /tmp/fleet-etcd/files --machine files etcd://127.0.0.1:2379/shop"
		envoy  = `"$(scripts/envoy)" --config-path /tmp/fleet-etcd-files.yaml`
		status = "bin/xdspub status --store etcd://127.0.0.1:2379/shop"
		curl   = "curl http://127.0.0.1:10000/"
	)
	e.upstreams(t, "python3 examples/upstream.py shop:8081")
	e.line(t, "go build -o bin/ ./cmd/xdspub")
	store := e.start(t, etcd)
	writer := e.start(t, "bin/xdspub watch --out /tmp/fleet-etcd/writer --store etcd://127.0.0.1:2379/shop examples/fleet-etcd/config")
	writer.WaitLog(t, "event=store-published ")
	machine := e.start(t, files)
	machine.WaitLog(t, "event=published ")
	e.run(t, "bin/xdspub bootstrap envoy --out /tmp/fleet-etcd/files --admin 127.0.0.1:9901 --node-id edge-1 --node-cluster edge > /tmp/fleet-etcd-files.yaml")
	live := e.envoy(t, envoy)
	server := e.start(t, "bin/xdspub serve --grpc 127.0.0.1:18000 --machine serve etcd://127.0.0.1:2379/shop")
	server.WaitLog(t, "event=published ")
	e.answers(t, curl, "shop")
	envoytest.Eventually(t, patience, "both machines are in sync", func() (bool, string) {
		out, stderr, _ := run(t, "/bin/sh", "-c", e.line(t, status))
		return strings.HasPrefix(out, "in sync: 2 machines\n"), out + stderr
	})
	e.edit(t, replace("cluster: shop", `cluster: shop, prefix_rewrite: "/new"`), "config/routes.yaml")
	machine.WaitLog(t, "event=published ")
	server.WaitLog(t, "event=published ")

	store.Signal(t, syscall.SIGKILL)
	store.Wait(t)
	machine.Signal(t, syscall.SIGTERM)
	machine.Wait(t)
	live.Stop(t)
	e.envoy(t, envoy)
	e.answers(t, curl, "shop")
	e.allDone(t)
}
