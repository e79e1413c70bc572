package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/tools/envoytest"
)

// The tests here show Envoy's reactions to files without xdspub, which are the reasons for the design of xdspub
// (docs/evidence/envoy-behaviour.md).

// bare is an Envoy that reads cds/cds.yaml and lds/lds.yaml.
type bare struct {
	dir   string
	admin int
	envoy *envoytest.Envoy
}

// startBare starts a bare with clusters and listeners.
func startBare(t *testing.T, clusters, listeners string) *bare {
	t.Helper()
	envoytest.Binary(t)
	b := &bare{dir: t.TempDir(), admin: envoytest.FreePort(t)}
	b.publish(t, "cds/cds.yaml", clusters)
	b.publish(t, "lds/lds.yaml", listeners)
	b.start(t)
	return b
}

func (b *bare) start(t *testing.T) {
	t.Helper()
	b.envoy = envoytest.Start(t, envoytest.Options{Bootstrap: fmt.Appendf(nil, `
node: {id: bare, cluster: bare}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}
dynamic_resources:
  cds_config: {path_config_source: {path: %[2]s/cds/cds.yaml}}
  lds_config: {path_config_source: {path: %[2]s/lds/lds.yaml}}
`, b.admin, b.dir)})
}

// publish writes a file with documents as its resources, by a rename.
func (b *bare) publish(t *testing.T, name, documents string) {
	t.Helper()
	list := strings.ReplaceAll(strings.TrimSuffix(documents, "\n"), "\n---\n", ", ")
	envoytest.Publish(t, filepath.Join(b.dir, name), "resources: ["+list+"]\n")
}

// counts waits until a statistic has the value want.
func (b *bare) counts(t *testing.T, stat string, want int64) {
	t.Helper()
	envoytest.Eventually(t, patience, fmt.Sprintf("%s becomes %d", stat, want), func() (bool, string) {
		got := b.envoy.Stat(t, stat)
		return got == want, fmt.Sprint(got)
	})
}

// has reports whether Envoy has a cluster.
func (b *bare) has(t *testing.T, cluster string) bool {
	t.Helper()
	return strings.Contains(b.envoy.Admin(t, "/clusters"), cluster+"::")
}

// looks waits until Envoy has read another file twice, and so has handled all earlier events.
func (b *bare) looks(t *testing.T) {
	t.Helper()
	for range 2 {
		n := b.envoy.Stat(t, "listener_manager.lds.update_success")
		b.publish(t, "lds/lds.yaml", "")
		b.counts(t, "listener_manager.lds.update_success", n+1)
	}
}

// TestEnvoyAppliesHalf: Envoy applies the valid resources and the removals of a refused file. No file has the old
// resources then, as a restart shows.
func TestEnvoyAppliesHalf(t *testing.T) {
	t.Parallel()
	b := startBare(t, documents(staticCluster("stays", 1), staticCluster("goes", 1)), "")
	bad := document("envoy.config.cluster.v3.Cluster", `name: bad, type: STATIC, load_assignment: {cluster_name: bad, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: not.an.address, port_value: 1}}}}]}]}`)
	b.publish(t, "cds/cds.yaml", documents(staticCluster("stays", 1), staticCluster("comes", 1), bad))
	b.counts(t, "cluster_manager.cds.update_rejected", 1)
	if !b.has(t, "stays") || !b.has(t, "comes") || b.has(t, "goes") || b.has(t, "bad") {
		t.Errorf("half of the file was not applied:\n%s", b.envoy.Admin(t, "/clusters"))
	}
	b.publish(t, "cds/cds.yaml", documents(staticCluster("twice", 1), staticCluster("twice", 1)))
	b.counts(t, "cluster_manager.cds.update_rejected", 2)
	if !b.has(t, "twice") || b.has(t, "stays") || b.has(t, "comes") {
		t.Errorf("the removals were not applied:\n%s", b.envoy.Admin(t, "/clusters"))
	}
	b.envoy.Stop(t)
	b.start(t)
	if b.has(t, "stays") || b.has(t, "comes") {
		t.Error("Envoy remembered clusters over a restart")
	}
}

// TestEnvoyRefusesWhole: Envoy refuses the whole file if a resource breaks a constraint of the API, or has a type
// that the binary does not hold.
func TestEnvoyRefusesWhole(t *testing.T) {
	t.Parallel()
	b := startBare(t, staticCluster("old", 1), "")
	for i, bad := range []string{
		staticCluster("bad", 1, "connect_timeout: 0s"),
		staticCluster("bad", 1, `transport_socket: {name: x, typed_config: {"@type": type.googleapis.com/no.such.Type}}`),
	} {
		b.publish(t, "cds/cds.yaml", documents(staticCluster("good", 1), bad))
		refused := func() int64 {
			return b.envoy.Stat(t, "cluster_manager.cds.update_rejected") + b.envoy.Stat(t, "cluster_manager.cds.update_failure")
		}
		envoytest.Eventually(t, patience, "Envoy refuses the file", func() (bool, string) {
			n := refused()
			return n == int64(i+1), fmt.Sprint(n)
		})
		if b.has(t, "good") || !b.has(t, "old") {
			t.Errorf("%sEnvoy applied the file by half:\n%s", bad, b.envoy.Admin(t, "/clusters"))
		}
	}
}

// TestEnvoyTakesNothing: by a file without resources, Envoy removes all resources.
func TestEnvoyTakesNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{}", "resources: []", "version_info: x"} {
		b := startBare(t, staticCluster("old", 1), "")
		before := b.envoy.Stat(t, "cluster_manager.cds.update_success")
		envoytest.Publish(t, filepath.Join(b.dir, "cds/cds.yaml"), text)
		b.counts(t, "cluster_manager.cds.update_success", before+1)
		if b.has(t, "old") {
			t.Errorf("%s: the cluster is still there", text)
		}
	}
}

// TestEnvoyDropsUnknownFields: Envoy counts a misspelled field, and ignores it.
func TestEnvoyDropsUnknownFields(t *testing.T) {
	t.Parallel()
	b := startBare(t, staticCluster("old", 1), "")
	b.publish(t, "cds/cds.yaml", staticCluster("new", 1, "conect_timeout: 7s, lb_policy: LEAST_REQEUST"))
	envoytest.Eventually(t, patience, "Envoy has the cluster", func() (bool, string) { return b.has(t, "new"), b.envoy.Log() })
	b.counts(t, "cluster_manager.cds.update_rejected", 0)
	if n := b.envoy.Stat(t, "server.dynamic_unknown_fields"); n == 0 {
		t.Error("server.dynamic_unknown_fields is 0")
	}
	if dump := b.envoy.Admin(t, "/config_dump"); strings.Contains(dump, "7s") || strings.Contains(dump, "REQEUST") {
		t.Errorf("the setting is in effect:\n%s", dump)
	}
}

// TestEnvoyWatchesTheInode: Envoy watches a removed folder for ever, and never watches a new folder of the same name.
func TestEnvoyWatchesTheInode(t *testing.T) {
	t.Parallel()
	b := startBare(t, staticCluster("old", 1), "")
	if err := os.RemoveAll(filepath.Join(b.dir, "cds")); err != nil {
		t.Fatal(err)
	}
	b.publish(t, "cds/cds.yaml", staticCluster("new", 1))
	b.looks(t)
	if b.has(t, "new") || !b.has(t, "old") {
		t.Error("Envoy saw what came instead of the folder")
	}
}

// TestEnvoySeesRenamesOnly: only a rename makes Envoy read a file again.
func TestEnvoySeesRenamesOnly(t *testing.T) {
	t.Parallel()
	b := startBare(t, staticCluster("old", 1), "")
	if err := os.WriteFile(filepath.Join(b.dir, "cds/cds.yaml"), []byte("resources: ["+staticCluster("new", 1)+"]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.looks(t)
	if b.has(t, "new") {
		t.Error("Envoy read what was written in place")
	}
	if err := os.Remove(filepath.Join(b.dir, "cds/cds.yaml")); err != nil {
		t.Fatal(err)
	}
	b.looks(t)
	if !b.has(t, "old") {
		t.Error("Envoy dropped what was unlinked")
	}
}

// TestWatchModify: with watch_modify, Envoy reads a file that is written in place, also when only a part of the
// file is written.
func TestWatchModify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, boot := filepath.Join(dir, "cds.yaml"), filepath.Join(dir, "boot.yaml")
	first, rest := "resources:\n- "+staticCluster("first", 1)+"\n", "- "+staticCluster("rest", 1)+"\n"
	envoytest.Publish(t, file, first+rest)
	bootstrap := fmt.Appendf(nil, `
node: {id: bare, cluster: bare}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources:
  cds_config: {path_config_source: {path: %s, watched_directory: {path: %s, watch_modify: true}}, resource_api_version: V3}
`, file, dir)
	if err := os.WriteFile(boot, bootstrap, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, exit := xdspub(t, "validate", boot); exit != 0 || !strings.Contains(out, "[config-source/watch-modify]") {
		t.Errorf("validate exits with %d:\n%s", exit, out)
	}
	b := bare{dir: dir, envoy: envoytest.Start(t, envoytest.Options{Bootstrap: bootstrap})}
	if !b.has(t, "first") || !b.has(t, "rest") {
		t.Fatal(b.envoy.Log())
	}
	if err := os.WriteFile(file, []byte(first), 0o644); err != nil {
		t.Fatal(err)
	}
	envoytest.Eventually(t, patience, "Envoy takes the first part for the whole", func() (bool, string) {
		return b.has(t, "first") && !b.has(t, "rest"), b.envoy.Log()
	})
	if err := os.WriteFile(file, []byte(first+rest), 0o644); err != nil {
		t.Fatal(err)
	}
	envoytest.Eventually(t, patience, "Envoy reads the rest", func() (bool, string) { return b.has(t, "rest"), b.envoy.Log() })
}
