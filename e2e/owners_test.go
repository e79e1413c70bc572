package e2e

import (
	"regexp"
	"syscall"
	"testing"

	"xdspub/tools/envoytest"
)

// heldA matches the event of a part with the folder of team a as it was last valid.
var heldA = regexp.MustCompile(`event=part-published .*held=\[teams/a\]`)

// team returns the files of a team: a listener whose routes lead to a cluster of the team.
func team(name string, port, upstream int) map[string]string {
	return map[string]string{
		"teams/" + name + "/edge.yaml":      documents(listener(name, port, rds(name)), routes(name, name)),
		"teams/" + name + "/cluster.yaml":   edsCluster(name),
		"teams/" + name + "/endpoints.yaml": endpoints(name, upstream),
	}
}

// teams returns the source tree of the teams a and b.
func teams(a, b, upstream int) map[string]string {
	all := map[string]string{"xdspub.yaml": "owners: [teams/*]\n"}
	for name, port := range map[string]int{"a": a, "b": b} {
		for file, text := range team(name, port, upstream) {
			all[file] = text
		}
	}
	return all
}

// TestOwners: while the folder of team a is broken, an Envoy gets new clusters, endpoints and routes of team b, and
// team a's listener serves as before, also after a restart of the watch. While Envoy rejects a listener of team a,
// team b goes on as well, and Envoy does not get the listener again. When team a mends its folder, its change is
// published.
func TestOwners(t *testing.T) {
	t.Parallel()
	one, two := envoytest.NewUpstream(t, "one"), envoytest.NewUpstream(t, "two")
	a, b := envoytest.FreePort(t), envoytest.FreePort(t)
	s := startConfirmed(t, teams(a, b, one.Port()))
	answers := func(port int, want string) {
		t.Helper()
		becomes(t, "the page", want, func() string { return ask(t, request{port: port}).text })
	}
	moves := func(cluster string, upstream int) {
		t.Helper()
		s.write(t, "teams/b/"+cluster+".yaml", edsCluster(cluster))
		s.write(t, "teams/b/"+cluster+"-endpoints.yaml", endpoints(cluster, upstream))
		s.write(t, "teams/b/edge.yaml", documents(listener("b", b, rds("b")), routes("b", cluster)))
		s.watch.WaitMatch(t, heldA)
	}
	answers(a, "200 one")
	answers(b, "200 one")

	s.write(t, "teams/a/endpoints.yaml", endpoints("a", two.Port()))
	s.write(t, "teams/a/broken.yaml", "name: [")
	s.watch.WaitLog(t, "event=source-invalid ")
	moves("more", two.Port())
	answers(b, "200 two")
	s.watch.Signal(t, syscall.SIGTERM)
	s.watch.Wait(t)
	s.remove(t, "teams/a/cluster.yaml") // no file of the source tree has the published name
	s.beginWatch(t)
	s.watch.WaitLog(t, "event=source-invalid ")
	moves("again", one.Port())
	answers(b, "200 one")

	s.write(t, "teams/a/cluster.yaml", edsCluster("a"))
	s.write(t, "teams/a/endpoints.yaml", endpoints("a", two.Port()))
	s.remove(t, "teams/a/broken.yaml")
	s.watch.WaitLog(t, "event=published ")
	answers(a, "200 two")

	busy, _ := takePort(t)
	s.write(t, "teams/a/busy.yaml", listener("busy", busy, rds("a")))
	s.watch.WaitLog(t, "event=rolled-back ")
	moves("third", two.Port())
	answers(b, "200 two")
	answers(a, "200 two")
	if rejected := s.envoy.Stats(t, `^listener_manager\.lds\.update_rejected$`); rejected["listener_manager.lds.update_rejected"] != "1" {
		t.Errorf("Envoy got the rejected listener again: %v", rejected)
	}
	s.remove(t, "teams/a/busy.yaml")
	s.watch.WaitLog(t, "event=published ")
	answers(a, "200 two")
}

// TestServeOwners: an Envoy that asks a server gets the changes of team b while the folder of team a is broken, also
// from a server that starts with the broken folder.
func TestServeOwners(t *testing.T) {
	t.Parallel()
	one, two := envoytest.NewUpstream(t, "one"), envoytest.NewUpstream(t, "two")
	a, b := envoytest.FreePort(t), envoytest.FreePort(t)
	s := serveTree(t, teams(a, b, one.Port()))
	flags := append(s.intoOut(), "--drain-time", "1s", "--step-gap", "0s")
	s.start(t, flags...)
	startByADS(t, "DELTA_GRPC", s.socket)
	answers := func(port int, want string) {
		t.Helper()
		becomes(t, "the page", want, func() string { return ask(t, request{port: port}).text })
	}
	answers(a, "200 one")
	answers(b, "200 one")
	s.write(t, "teams/a/endpoints.yaml", "name: [")
	s.server.WaitLog(t, "event=source-invalid ")
	s.write(t, "teams/b/endpoints.yaml", endpoints("b", two.Port()))
	s.server.WaitMatch(t, heldA)
	answers(b, "200 two")
	s.end(t)

	s.begin(t, flags...)
	s.server.WaitLog(t, "event=serving-published ")
	s.write(t, "teams/b/more.yaml", documents(edsCluster("more"), endpoints("more", one.Port())))
	s.write(t, "teams/b/edge.yaml", documents(listener("b", b, rds("b")), routes("b", "more")))
	s.server.WaitMatch(t, heldA)
	answers(b, "200 one")
	answers(a, "200 one")
	s.write(t, "teams/a/endpoints.yaml", endpoints("a", two.Port()))
	s.server.WaitLog(t, "event=published ")
	answers(a, "200 two")
}
