package e2e

import (
	"testing"

	"xdspub/tools/envoytest"
)

// TestPortMoves: a listener takes the port that another listener leaves in the same publish. In the order of names,
// the first listener would be before the other, and Envoy would refuse it.
func TestPortMoves(t *testing.T) {
	t.Parallel()
	upstream := envoytest.NewUpstream(t, "upstream")
	first, second, third := envoytest.FreePort(t), envoytest.FreePort(t), envoytest.FreePort(t)
	tree := func(a, b int) string {
		return documents(staticCluster("web", upstream.Port()), routes("main", "web"),
			listener("a", a, rds("main"), "server_name: a"), listener("b", b, rds("main"), "server_name: b"))
	}
	s := startFixture(t, map[string]string{"all.yaml": tree(first, second)})
	serves := func(port int, name string) {
		t.Helper()
		becomes(t, "the listener", name, func() string { return ask(t, request{port: port}).header.Get("Server") })
	}
	serves(second, "b")
	s.edit(t, "all.yaml", func(string) string { return tree(second, third) })
	serves(second, "a")
	serves(third, "b")
	s.took(t)

	// Envoy accepts two listeners that exchange their ports in no order.
	before := s.published(t)
	s.write(t, "all.yaml", tree(third, second))
	s.watch.WaitLog(t, "code=address-swap ")
	s.watch.WaitLog(t, "event=source-invalid ")
	if s.published(t) != before {
		t.Error("the output moved")
	}
	serves(second, "a")
	content(t, s.envoy)
}
