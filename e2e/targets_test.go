package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/tools/envoytest"
)

// variant returns a source document of a resource that is for clients with this env.
func variant(name, env, resource string) string {
	return fmt.Sprintf("\"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource\nresource_name: {name: %s, dynamic_parameter_constraints: {constraint: {key: env, value: %s}}}\nresource:\n  %s\n",
		name, env, strings.ReplaceAll(strings.TrimSpace(resource), "\n", "\n  "))
}

// TestTargetsOfTwoEnvoys: one watch publishes a tree for two Envoys. If one of them rejects a change, the watch
// rolls back the output directory of this Envoy only. The other Envoy gets this change and later changes.
func TestTargetsOfTwoEnvoys(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	blue, green := envoytest.NewUpstream(t, "blue"), envoytest.NewUpstream(t, "green")
	port := map[string]int{"a": envoytest.FreePort(t), "b": envoytest.FreePort(t)}
	free := envoytest.FreePort(t)
	busy, _ := takePort(t)
	of := make(map[string]*fixture)
	for _, name := range []string{"a", "b"} {
		of[name] = newFixture(t, nil)
	}
	a, b := of["a"], of["b"]
	web := func(env string, page int) string {
		return variant("web", env, staticCluster("web", page))
	}
	edge := func(env string, port int) string {
		return variant("edge", env, listener("edge", port, "route_config: {"+hosts("web")+"}"))
	}
	a.write(t, "web.yaml", documents(web("a", blue.Port()), web("b", blue.Port())))
	a.write(t, "edge.yaml", documents(edge("a", port["a"]), edge("b", port["b"])))
	config := filepath.Join(t.TempDir(), "settings.yaml")
	settings := "targets:\n"
	for _, name := range []string{"a", "b"} {
		settings += fmt.Sprintf("  %s: {params: {env: %s}, output: %s, envoy-admin: \"http://%s\"}\n", name, name, of[name].out, address(of[name].admin))
	}
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	w := startWatch(t, "--config", config, "--out", filepath.Join(t.TempDir(), "out"), "--step-gap", "100ms", "--ack-timeout", ackTimeout.String(), a.src)
	says := func(pattern string) {
		t.Helper()
		envoytest.Eventually(t, patience, "the log has "+pattern, func() (bool, string) {
			return regexp.MustCompile(pattern).MatchString(w.Log()), w.Log()
		})
	}
	for name, s := range of {
		says("event=published target=" + name + " ")
		s.startEnvoy(t)
		s.took(t)
		becomes(t, "the page of "+name, "200 blue", func() string { return ask(t, request{port: port[name]}).text })
	}
	before := b.bytesOut(t)

	// A listener for each Envoy; the port of b's is taken.
	a.write(t, "more.yaml", documents(variant("more", "a", listener("more", free, "route_config: {"+hosts("web")+"}")), variant("more", "b", listener("more", busy, "route_config: {"+hosts("web")+"}"))))
	says("event=rolled-back target=b ")
	becomes(t, "the new listener of a", "200 blue", func() string { return ask(t, request{port: free}).text })
	b.sameOut(t, before)

	// b's snapshot is held; a goes on.
	a.write(t, "web.yaml", documents(web("a", green.Port()), web("b", blue.Port())))
	becomes(t, "the page of a", "200 green", func() string { return ask(t, request{port: port["a"]}).text })
	a.took(t)
	if diff := cmp.Diff(before, b.bytesOut(t)); diff != "" {
		t.Errorf("an edit of a variant of a moved files of b (-before +after):\n%s", diff)
	}
	if page := ask(t, request{port: port["b"]}).text; page != "200 blue" {
		t.Errorf("the page of b: %s", page)
	}
	if strings.Contains(w.Log(), "event=rolled-back target=a") {
		t.Errorf("something was taken back for a:\n%s", w.Log())
	}
	w.Signal(t, syscall.SIGTERM)
	if exit := w.Wait(t); exit != 0 {
		t.Errorf("exit status %d", exit)
	}
}
