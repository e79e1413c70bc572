package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"xdspub/tools/envoytest"
)

// TestAdminPaths: an admin interface that answers only what --admin-paths needed writes is enough for
// confirmation, status and probes. Envoy answers 403 to any other path, which import explains.
func TestAdminPaths(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	s := newFixture(t, map[string]string{"edge.yaml": staticCluster("one", 1)})
	render := func() {
		t.Helper()
		if _, stderr, exit := xdspub(t, "render", "--out", s.out, "--envoy-admin", "http://"+address(s.admin), s.src); exit != 0 {
			t.Fatalf("exit status %d\n%s", exit, stderr)
		}
	}
	_, _, _ = xdspub(t, "render", "--out", s.out, s.src)
	bootstrap, stderr, exit := xdspub(t, "bootstrap", "envoy", "--out", s.out, "--admin", address(s.admin), "--admin-paths", "needed")
	if exit != 0 {
		t.Fatal(stderr)
	}
	s.envoy = envoytest.Start(t, envoytest.Options{Bootstrap: []byte(bootstrap)})
	s.write(t, "edge.yaml", staticCluster("two", 1))
	render()
	if r := s.status(t, s.envoy); !r.InSync {
		t.Errorf("%+v", r)
	}
	for path, want := range map[string]int{"/ready": 200, "/clusters": 403, "/quitquitquit": 403, "/stats/prometheus": 403} {
		response, err := http.Get("http://" + address(s.admin) + path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, response.StatusCode, want)
		}
	}
	_, stderr, exit = xdspub(t, "import", "http://"+address(s.admin), t.TempDir()+"/imported")
	if want := "admin.allow_paths of its bootstrap refuses /config_dump: add {prefix: '/config_dump?'} there"; exit != 3 || !strings.Contains(stderr, want) {
		t.Errorf("import: exit status %d, says %q, and not %q", exit, stderr, want)
	}
}
