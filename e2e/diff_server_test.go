package e2e

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"xdspub/diff"
	"xdspub/tools/envoytest"
)

// TestDiffControlPlane compares a source tree with a control plane of go-control-plane, and with an Envoy that the
// control plane configures. Both comparisons have the same effects.
func TestDiffControlPlane(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	blue, port := envoytest.NewUpstream(t, "blue").Port(), envoytest.FreePort(t)
	good := documents(listener("in", port, rds("main")), staticCluster("blue", blue), routes("main", "blue"))
	p := startPlane(t)
	p.set(t, good)
	envoy := straight(t, p.socket)
	becomes(t, "the answer", "200 blue", func() string { return ask(t, request{port: port}).text })
	s := newFixture(t, map[string]string{"all.yaml": good})
	compare := func(exit int, args ...string) (d struct{ Effects []diff.Effect }) {
		t.Helper()
		stdout, stderr, is := xdspub(t, append(append([]string{"diff", "--format", "json"}, args...), s.src)...)
		if is != exit {
			t.Fatalf("%q: exit status %d\n%s%s", args, is, stdout, stderr)
		}
		if err := json.Unmarshal([]byte(stdout), &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	plane, admin := []string{"--node-id", "edge", "xds+unix:" + p.socket}, []string{"--envoy-admin", "http://" + envoy.AdminAddress(t)}
	compare(0, plane...)
	compare(0, admin...)
	s.write(t, "all.yaml", documents(
		listener("in", port, "server_name: other", rds("main")), staticCluster("blue", blue+1), staticCluster("green", blue), routes("main", "green"),
	))
	byPlane, byEnvoy := compare(1, plane...), compare(1, admin...)
	if d := cmp.Diff(byEnvoy.Effects, byPlane.Effects, cmpopts.IgnoreUnexported(diff.Effect{})); d != "" || len(byPlane.Effects) < 4 {
		t.Errorf("(-by Envoy +by the control plane)\n%s", d)
	}
}
