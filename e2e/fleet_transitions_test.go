package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xdspub/tools/envoytest"
)

// transitionsPage has the source trees of the two ways to a new dynamic parameter.
const transitionsPage = "docs/dynamic-parameters-transitions.md"

// versions returns the texts of a file of the page, in their order.
func versions(t *testing.T, name string) (list []string) {
	t.Helper()
	for _, p := range partsOf(page(t, transitionsPage)) {
		if p.file == name {
			list = append(list, p.text)
		}
	}
	if len(list) == 0 {
		t.Fatalf("the page has no file %s", name)
	}
	return list
}

// newKey is a fleet that introduces a new dynamic parameter.
type newKey struct {
	servedTree
	ports map[string]int // the ports of the listeners, by node id of the Envoy
}

// newKeyOf serves the first tree of the page. Unlike on the page, each Envoy has a listener on another port.
func newKeyOf(t *testing.T, nodes ...string) *newKey {
	t.Helper()
	s := &newKey{*serveTree(t, nil), make(map[string]int)}
	var edges []string
	for _, node := range nodes {
		s.ports[node] = envoytest.FreePort(t)
		edge := strings.Replace(versions(t, "first/edge.yaml")[0], "10000", fmt.Sprint(s.ports[node]), 1)
		edges = append(edges, strings.Replace(variant("edge", node, edge), "key: env", "key: node", 1))
	}
	s.write(t, "edge.yaml", documents(edges...))
	for _, name := range []string{"prod.yaml", "test.yaml", "xdspub.yaml"} {
		s.write(t, name, versions(t, "first/"+name)[0])
	}
	s.start(t, "--node-param", "node=id", "--node-param", "env=metadata.env", "--node-param", "version=metadata.version")
	return s
}

// asking sends requests to an Envoy, one after another.
type asking struct {
	envoy   *envoytest.Envoy
	end     func()
	mu      sync.Mutex
	answers []string // in order, without repetitions
}

// envoy starts an Envoy, waits for its first answer, and then sends requests.
func (s *newKey) envoy(t *testing.T, node, first string, metadata ...string) *asking {
	t.Helper()
	args := []string{"bootstrap", "envoy", "--transport", "delta-ads", "--server", s.address, "--admin", address(envoytest.FreePort(t)), "--node-id", node, "--node-cluster", "fleet"}
	for _, m := range metadata {
		args = append(args, "--node-metadata", m)
	}
	bootstrap, stderr, exit := xdspub(t, args...)
	if exit != 0 {
		t.Fatal(stderr)
	}
	a := &asking{envoy: envoytest.Start(t, envoytest.Options{Bootstrap: []byte(bootstrap)}), answers: []string{"200 " + first + "\n"}}
	get := func() string { return ask(t, request{port: s.ports[node]}).text }
	becomes(t, "the first answer of "+node, a.answers[0], get)
	end := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-time.After(20 * time.Millisecond):
			}
			is := get()
			a.mu.Lock()
			if a.answers[len(a.answers)-1] != is {
				a.answers = append(a.answers, is)
			}
			a.mu.Unlock()
		}
	})
	a.end = sync.OnceFunc(func() { close(end); running.Wait() })
	t.Cleanup(a.end)
	return a
}

// becomes waits until the answer of the Envoy is want.
func (a *asking) becomes(t *testing.T, want string) {
	t.Helper()
	becomes(t, "the answer", "200 "+want+"\n", func() string {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.answers[len(a.answers)-1]
	})
}

// stop ends the requests and the Envoy, and fails the test unless the answers were want.
func (a *asking) stop(t *testing.T, want ...string) {
	t.Helper()
	a.end()
	for i := range want {
		want[i] = "200 " + want[i] + "\n"
	}
	if !slices.Equal(a.answers, want) {
		t.Errorf("the answers were %q, want %q", a.answers, want)
	}
	content(t, a.envoy)
	a.envoy.Stop(t)
}

// TestNewKeyOnClientsFirst: clients begin to send a new key, and keep their resources. Then variants distinguish
// the clients by the key. No request fails meanwhile.
func TestNewKeyOnClientsFirst(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	s := newKeyOf(t, "old", "one", "two", "test")
	old := s.envoy(t, "old", "prod", "env=prod")
	one := s.envoy(t, "one", "prod", "env=prod", "version=v1")
	two := s.envoy(t, "two", "prod", "env=prod", "version=v2")
	test := s.envoy(t, "test", "test", "env=test", "version=v1")
	old.stop(t, "prod")

	all := versions(t, "first/xdspub.yaml")
	s.write(t, "xdspub.yaml", all[len(all)-1])
	s.server.WaitLog(t, "event=source-invalid ") // the settings name a file that does not exist yet
	s.write(t, "prod-v2.yaml", versions(t, "first/prod-v2.yaml")[0])
	s.server.WaitLog(t, "event=published ")
	two.becomes(t, "prod v2")
	two.stop(t, "prod", "prod v2")
	one.stop(t, "prod")
	test.stop(t, "test")
}

// TestNewKeyOnServerFirst: variants distinguish clients by a new key that no client sends yet. Then a client begins
// to send the key. No request fails meanwhile.
func TestNewKeyOnServerFirst(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	s := newKeyOf(t, "old", "early", "new", "test")
	old := s.envoy(t, "old", "prod", "env=prod")
	early := s.envoy(t, "early", "prod", "env=prod", "version=v1")
	test := s.envoy(t, "test", "test", "env=test")

	s.write(t, "prod-v1.yaml", versions(t, "second/prod-v1.yaml")[0])
	for i, settings := range versions(t, "second/xdspub.yaml") {
		s.write(t, "xdspub.yaml", settings)
		if i == 0 { // ambiguous
			s.server.WaitLog(t, "code=variant-keys ")
		}
	}
	s.server.WaitLog(t, "event=published ")
	early.becomes(t, "prod v1")
	s.envoy(t, "new", "prod v1", "env=prod", "version=v1").stop(t, "prod v1")
	early.stop(t, "prod", "prod v1")
	old.stop(t, "prod")
	test.stop(t, "test")
}
