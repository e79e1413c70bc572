package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"xdspub/tools/envoytest"
	"xdspub/tools/memdir"
)

// TestKilled kills xdspub after each step of a change that needs all steps. At each point, the files are good for
// an Envoy that starts, and for a running Envoy. In the end, the change is published.
func TestKilled(t *testing.T) { inFormats(t, testKilled) }

func testKilled(t *testing.T, format string) {
	blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
	port, secure := envoytest.FreePort(t), envoytest.FreePort(t)
	first, second := newPair(t, "first"), newPair(t, "second")
	color := func(name string, upstream int, pair pair) map[string]string {
		return map[string]string{
			"endpoints.yaml": documents(edsCluster("common"), endpoints("common", upstream), edsCluster(name), endpoints(name, upstream)),
			"secrets.yaml":   documents(certificate("certificate", pair), runtimeLayer("flags", fmt.Sprintf("{color: %s}", name))),
			"edge.yaml": documents(routes("main", "common", fmt.Sprintf(`{match: {prefix: /named}, route: {cluster: %s}}`, name)), listener("edge", port, rds("main")),
				routes(name, name), tlsListener("secure", secure, downstreamTLS("certificate"), rds(name))),
		}
	}
	s := startFixture(t, color("blue", blue.Port(), first), "--format", format)
	pages := []request{{port: port}, {port: port, path: "/named"}}
	serve := func(colors ...string) {
		t.Helper()
		for _, page := range pages {
			envoytest.Eventually(t, patience, fmt.Sprintf("a page of one of %v", colors), func() (bool, string) {
				got := ask(t, page).text
				return slices.Contains(colors, got), got
			})
		}
		if name := peer(secure); name != "first" && name != "second" {
			t.Errorf("TLS: %s", name)
		}
		content(t, s.envoy)
	}
	serve("200 blue")
	s.watch.Signal(t, syscall.SIGTERM)
	s.watch.Wait(t)

	for name, text := range color("green", green.Port(), second) {
		s.write(t, name, text)
	}
	for _, step := range []string{`"new names"`, `"secrets, extensions, runtime"`, "clusters", "endpoints", "listeners"} {
		s.beginWatch(t, "--step-gap", "1h") // the watch publishes the first missing step
		s.watch.WaitLog(t, "event=step-published step="+step)
		serve("200 blue", "200 green")
		s.watch.Signal(t, syscall.SIGKILL)
		s.watch.Wait(t)
		s.envoy.Kill(t)
		s.startEnvoy(t)
		serve("200 blue", "200 green")
	}
	s.startWatch(t)
	for _, page := range pages {
		becomes(t, page.path, "200 green", func() string { return ask(t, page).text })
	}
	becomes(t, "TLS", "second", func() string { return peer(secure) })
	serve("200 green")
	envoytest.Eventually(t, patience, "nothing is left in the stage", func() (bool, string) {
		left, err := os.ReadDir(filepath.Join(s.out, ".xdspub/stage")) // a record may be on its way
		return err == nil && len(left) == 0, fmt.Sprint(left, err)
	})
}

// TestReaders reads the published files again and again while they change. Each file always exists, is complete,
// and is of one generation.
func TestReaders(t *testing.T) { inFormats(t, testReaders) }

func testReaders(t *testing.T, format string) {
	const marks = 30
	publishes := 20 // publish.TestReaders has a thousand
	if format == "json" {
		publishes = 100
	}
	generation := func(n int) string {
		mark := fmt.Sprintf("generation-%d.", n)
		list := []string{edsCluster("web"), document("envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name: web, endpoints: [{locality: {zone: %[1]q, region: %[1]q}}]", mark)}
		var further []string
		for i := range marks {
			list = append(list, staticCluster(fmt.Sprintf("c%d", i), 1, "alt_stat_name: "+mark))
			further = append(further, fmt.Sprintf(`{name: %q, match: {prefix: "/%d"}, route: {cluster: c0}}`, mark, i))
		}
		list = append(list, routes("main", "c0", further...), listener("edge", 1, "server_name: "+mark, "via: "+mark, rds("main")))
		return documents(list...)
	}
	s := newFixture(t, map[string]string{"all.yaml": generation(0)}, "--step-gap", "0s", "--quiet-period", "1ms", "--format", format)
	s.out = filepath.Join(memdir.New(t), "out") // faster, and the same for readers
	s.args = append(s.args, "--out", s.out)
	s.startWatch(t)

	mark := regexp.MustCompile(`generation-\d+\.`)
	end, ended := make(chan struct{}), make(chan struct{})
	var reads atomic.Int64
	go func() {
		defer close(ended)
		pace := time.NewTicker(500 * time.Microsecond) // leaves a core to parallel tests
		defer pace.Stop()
		for ; ; reads.Add(1) {
			for file, want := range map[string]int{"cds/cds": marks, "rds/main/rds": marks, "lds/lds": 2, "eds/web/eds": 2} {
				file += "." + format
				text, err := os.ReadFile(filepath.Join(s.out, file))
				if err == nil {
					_, err = decode(file, text)
				}
				found := mark.FindAllString(string(text), -1)
				if err != nil || len(found) != want || len(slices.Compact(found)) != 1 {
					t.Errorf("%s is not whole or of one generation in reading %d: %v %v\n%s", file, reads.Load(), err, found, text)
					return
				}
			}
			select {
			case <-end:
				return
			case <-pace.C:
			}
		}
	}()
	for n := 1; n <= publishes; n++ {
		s.edit(t, "all.yaml", func(string) string { return generation(n) })
		envoytest.Eventually(t, patience, "there are as many readings as publishes", func() (bool, string) {
			return int(reads.Load()) >= n || t.Failed(), fmt.Sprintf("%d readings of %d publishes", reads.Load(), n)
		})
	}
	close(end)
	<-ended
	t.Logf("%d readings of %d publishes", reads.Load(), publishes)
}
