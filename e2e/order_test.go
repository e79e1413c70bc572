package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"xdspub/render"
	"xdspub/tools/envoytest"
	"xdspub/tools/portion"
)

// TestBusyEnvoy publishes a new cluster and a listener that routes to it, again and again, to a busy Envoy. Envoy
// reads both files in the right order all the same, and no connection stays without an answer. Envoy would refuse a
// listener before its cluster, because the listener has inline routes. A sample has one format.
func TestBusyEnvoy(t *testing.T) {
	for i, f := range render.Formats { // not in parallel: each needs the whole machine
		if i%portion.Every(4, 4) != 0 {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			publishes := 4
			if f == render.JSON {
				publishes = 12
			}
			testBusyEnvoy(t, f.Name, publishes)
		})
	}
}

func testBusyEnvoy(t *testing.T, format string, publishes int) {
	upstream := envoytest.NewUpstream(t, "upstream")
	port := envoytest.FreePort(t)
	generation := func(n int) string {
		name := fmt.Sprintf("generation-%d", n)
		return documents(staticCluster(name, upstream.Port()), listener("edge", port, "server_name: "+name, "route_config: {"+hosts(name)+"}"))
	}
	var ballast []string // makes /config_dump slow
	for i := range 300 {
		ballast = append(ballast, staticCluster(fmt.Sprintf("ballast-%d", i), upstream.Port()))
	}
	s := startFixture(t, map[string]string{"ballast.yaml": documents(ballast...), "edge.yaml": generation(0)}, "--format", format)
	page := request{port: port}
	becomes(t, "the page", "200 upstream", func() string { return ask(t, page).text })

	dumps, idle := keepBusy(t, s.admin, 3)
	stop := send(t, page, func(answer string) bool { return answer == "200 upstream" })
	for n := 1; n <= publishes; n++ {
		envoytest.Eventually(t, patience, "requests and dumps go on beside each publish", func() (bool, string) {
			return upstream.Requests() >= int64(10*n) && dumps() >= n, fmt.Sprintf("%d requests, %d dumps, %d publishes", upstream.Requests(), dumps(), n-1)
		})
		s.edit(t, "edge.yaml", func(string) string { return generation(n) })
		becomes(t, "the listener", fmt.Sprintf("generation-%d", n), func() string { return ask(t, page).header.Get("Server") })
	}
	t.Logf("%d requests, %d dumps", stop(), idle())
	content(t, s.envoy)
	s.trim(t)
	envoytest.Eventually(t, patience, "the clusters of before go", func() (bool, string) {
		n := s.envoy.Stat(t, "cluster_manager.active_clusters")
		return n == 301, fmt.Sprint(n, " clusters")
	})
}

// trim trims retired resources by another watch, after Envoy has accepted all published files. On a busy machine, a
// short trim delay of the first watch could be over before.
func (s *fixture) trim(t *testing.T) {
	t.Helper()
	s.watch.Signal(t, syscall.SIGTERM)
	s.watch.Wait(t)
	s.startWatch(t, "--trim-delay", "1ms")
	s.watch.WaitLog(t, "event=trimmed")
}

// keepBusy keeps Envoy's main thread, which also reads the files, as busy as possible until stop is called. Both
// functions return the number of answers.
func keepBusy(t *testing.T, admin, askers int) (answers, stop func() int) {
	end := make(chan struct{})
	var running sync.WaitGroup
	var answered atomic.Int64
	for range askers {
		running.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				if got := ask(t, request{port: admin, path: "/config_dump"}).text; !strings.HasPrefix(got, "200 ") {
					t.Errorf("/config_dump: %.100s", got)
					return
				}
				answered.Add(1)
			}
		})
	}
	answers = func() int { return int(answered.Load()) }
	return answers, func() int {
		close(end)
		running.Wait()
		return answers()
	}
}

// TestRemoval removes a cluster, its endpoints, its routes and a listener, and adds them again. In between, no
// request is routed to the removed cluster. After the trim, only the folders are left, which Envoy may still watch.
func TestRemoval(t *testing.T) { inFormats(t, testRemoval) }

func testRemoval(t *testing.T, format string) {
	web, old, newer := envoytest.NewUpstream(t, "web"), envoytest.NewUpstream(t, "old"), envoytest.NewUpstream(t, "newer")
	port, second := envoytest.FreePort(t), envoytest.FreePort(t)
	stays := documents(staticCluster("web", web.Port()), listener("edge", port, rds("main")))
	with := documents(routes("main", "web", `{match: {prefix: /old}, route: {cluster: old}}`),
		edsCluster("old"), endpoints("old", old.Port()), routes("legacy", "old"), listener("legacy", second, rds("legacy")))
	without := routes("main", "web")
	s := startFixture(t, map[string]string{"stays.yaml": stays, "goes.yaml": with}, "--format", format)
	page, legacy := request{port: port, path: "/old"}, request{port: second}
	both := func(want string) {
		t.Helper()
		becomes(t, "/old", want, func() string { return ask(t, page).text })
		becomes(t, "the second listener", want, func() string { return ask(t, legacy).text })
		content(t, s.envoy)
	}
	both("200 old")
	stop := send(t, page, func(answer string) bool { return strings.HasPrefix(answer, "200 ") })

	s.edit(t, "goes.yaml", func(string) string { return without })
	becomes(t, "/old", "200 web", func() string { return ask(t, page).text })
	becomes(t, "the second listener", "refused", func() string { return listens(second) })
	s.trim(t)
	envoytest.Eventually(t, patience, "the cluster goes", func() (bool, string) {
		clusters := s.envoy.Admin(t, "/clusters")
		return !strings.Contains(clusters, "old::"), clusters
	})
	for _, file := range []string{"eds/old/eds." + format, "rds/legacy/rds." + format} {
		if s.exists(file) || !s.exists(filepath.Dir(file)) {
			t.Errorf("%s is there: %t, its folder: %t; want just the folder", file, s.exists(file), s.exists(filepath.Dir(file)))
		}
	}
	content(t, s.envoy)

	// Envoy subscribes to the restored names, even if users of the old resources drain.
	s.edit(t, "goes.yaml", func(string) string { return with })
	both("200 old")
	s.edit(t, "goes.yaml", replace(fmt.Sprint(old.Port()), fmt.Sprint(newer.Port())))
	both("200 newer")
	stop()
	s.edit(t, "goes.yaml", replace(`route: {cluster: "old"}`, `route: {cluster: "web"}`))
	becomes(t, "the second listener", "200 web", func() string { return ask(t, legacy).text })
	content(t, s.envoy)
}

// TestRuntimeLayerRemoved: the bootstrap of a running Envoy names the layer, so xdspub publishes an empty layer in
// place of a removed one, until it comes back.
func TestRuntimeLayerRemoved(t *testing.T) { inFormats(t, testRuntimeLayerRemoved) }

func testRuntimeLayerRemoved(t *testing.T, format string) {
	blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
	port := envoytest.FreePort(t)
	layer := runtimeLayer("flags", `{canary: {numerator: 100}}`)
	s := startFixture(t, map[string]string{
		"clusters.yaml": documents(staticCluster("blue", blue.Port()), staticCluster("green", green.Port())),
		"edge.yaml": documents(listener("edge", port, rds("main")),
			routes("main", "blue", `{match: {prefix: /, runtime_fraction: {default_value: {numerator: 0}, runtime_key: canary}}, route: {cluster: green}}`)),
		"flags.yaml": layer,
	}, "--trim-delay", "0s", "--format", format)
	page := func() string { return ask(t, request{port: port}).text }
	has := func(want bool) {
		t.Helper()
		if runtime := s.envoy.Admin(t, "/runtime"); strings.Contains(runtime, "canary") != want {
			t.Errorf("the runtime has the flag: %t, want %t:\n%s", !want, want, runtime)
		}
		content(t, s.envoy)
	}
	becomes(t, "the page", "200 green", page)
	has(true)
	s.remove(t, "flags.yaml")
	s.watch.WaitLog(t, "event=published ")
	becomes(t, "the page", "200 blue", page)
	has(false)
	s.envoy.Stop(t)
	s.startEnvoy(t)
	becomes(t, "the page of a new Envoy", "200 blue", page)
	has(false)
	s.write(t, "flags.yaml", layer)
	s.watch.WaitLog(t, "event=published ")
	becomes(t, "the page", "200 green", page)
	has(true)
}
