package e2e

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"xdspub/render/publish"
	"xdspub/tools/envoytest"
)

// turn is a tree, and the step after which the test ends the watch; "" means after the whole change.
type turn struct{ tree, end string }

// play publishes trees one after another, each with a new watch.
func (s *fixture) play(t *testing.T, turns ...turn) {
	t.Helper()
	for _, now := range turns {
		s.write(t, "edge.yaml", now.tree)
		if now.end == "" {
			s.startWatch(t)
		} else {
			s.beginWatch(t, "--step-gap", "1h") // the watch ends before the next step
			s.watch.WaitLog(t, "event=step-published step="+now.end)
		}
		s.watch.Signal(t, syscall.SIGTERM)
		s.watch.Wait(t)
	}
}

// TestInterrupted ends changes early, and publishes other changes in their place. The new listener never routes by
// resources of the interrupted change (publish.TestHistories).
func TestInterrupted(t *testing.T) {
	t.Parallel()
	web, dead := envoytest.NewUpstream(t, "web"), envoytest.NewUpstream(t, "dead")
	port := envoytest.FreePort(t)
	always := documents(staticCluster("web", web.Port()), routes("main", "web"))
	named := func(cluster string) string {
		return documents(always, routes("rb", cluster), listener("edge", port, rds("rb")))
	}
	scoped := func(cluster string) string {
		return documents(always, routes("by-scope", cluster), scope("all", "a", "by-scope"), listener("edge", port, srds("scopes")))
	}
	x := staticCluster("x", dead.Port())
	before := documents(always, listener("edge", port, rds("main")))
	byFile := documents(always, edsCluster("x"), endpoints("x", web.Port()), routes("rb", "x"), listener("edge", port, rds("rb")))
	for _, tt := range []struct {
		name  string
		turns []turn
		ask   request
	}{
		{"routes", []turn{{before, ""}, {documents(x, named("x")), `"new names"`}, {named("web"), ""}}, request{port: port}},
		{"routes, once more", []turn{{before, ""}, {named("web"), ""}, {before, ""}, {documents(x, named("x")), "clusters"}, {named("web"), ""}}, request{port: port}},
		{"scopes", []turn{{before, ""}, {documents(x, scoped("x")), `"new names"`}, {scoped("web"), ""}}, request{port: port, header: "x-tenant: a"}},
		{"endpoints", []turn{
			{documents(always, staticCluster("x", web.Port()), routes("rb", "x"), listener("edge", port, rds("rb"))), ""},
			{strings.Replace(byFile, endpoints("x", web.Port()), endpoints("x", dead.Port()), 1), `"new names"`}, {byFile, ""},
		}, request{port: port}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			envoytest.Binary(t)
			s := newFixture(t, nil)
			s.play(t, tt.turns[0])
			s.startEnvoy(t)
			becomes(t, "the listener", "200 web", func() string { return ask(t, tt.ask).text })
			stop := send(t, tt.ask, func(answer string) bool { return answer == "200 web" })
			s.play(t, tt.turns[1:]...)
			becomes(t, "the last tree", "200 web", func() string { return ask(t, tt.ask).text })
			stop()
			if n := s.envoy.Stat(t, "http.edge.no_cluster"); n > 0 {
				t.Errorf("%d requests found no cluster", n)
			}
			content(t, s.envoy)
			s.envoy.Stop(t)
		})
	}
}

// TestBackThenInterrupted restores retired endpoints of a cluster, ends the watch early, and removes the cluster.
// The file of the endpoints stays as long as CDS names it, and an Envoy that starts meanwhile accepts all published
// files.
func TestBackThenInterrupted(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	up := envoytest.NewUpstream(t, "web").Port()
	always := documents(staticCluster("web", up), routes("main", "web"), listener("edge", envoytest.FreePort(t), rds("main")))
	byFile := documents(edsCluster("blue"), endpoints("blue", up), staticCluster("web", up), routes("main", "blue"), listener("edge", envoytest.FreePort(t), rds("main")))
	s := newFixture(t, nil, "--trim-delay", "3s")
	const file = "eds/blue/eds.json"
	s.play(t, turn{byFile, ""}, turn{documents(staticCluster("blue", up), always), ""}, turn{byFile, "clusters"})
	s.write(t, "edge.yaml", always)
	s.startWatch(t)
	names := func() bool {
		text, err := os.ReadFile(filepath.Join(s.out, "cds/cds.json"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), file)
	}
	if !names() {
		t.Fatal("blue is gone at once")
	}
	s.startEnvoy(t)
	content(t, s.envoy)
	envoytest.Eventually(t, patience, "all is gone that goes", func() (bool, string) {
		if named := names(); named && !s.exists(file) && names() {
			t.Fatal("CDS names a file that is not there")
		}
		m, err := publish.ReadManifest(s.out)
		_, gone := os.Stat(filepath.Join(s.out, file))
		return err == nil && len(m.Retired) == 0 && errors.Is(gone, fs.ErrNotExist), "it waits"
	})
	content(t, s.envoy)
}
