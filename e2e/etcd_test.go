package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"filippo.io/age"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"xdspub/tools/envoytest"
	"xdspub/tools/etcdtest"
	"xdspub/xds"
)

// etcdFleet is a store, its writer, and the source tree of the writer.
type etcdFleet struct {
	fixture
	etcd  *etcdtest.Server
	store string // the address
	flags []string
}

// startEtcdFleet starts an etcd and a writer. args are flags of the writer and of each machine.
func startEtcdFleet(t *testing.T, source map[string]string, args ...string) *etcdFleet {
	t.Helper()
	f := &etcdFleet{etcd: etcdtest.Start(t), flags: args}
	f.store = "etcd://" + f.etcd.Endpoint + "/fleet"
	f.fixture = *newFixture(t, source, append(args, "--store", f.store, "--quiet-period", "20ms")...)
	f.startWatch(t)
	f.watch.WaitLog(t, "event=store-published ")
	return f
}

// machine is a fixture that follows the store.
func (f *etcdFleet) machine(t *testing.T, name string) *fixture {
	t.Helper()
	m := newFixture(t, nil, append(f.flags, "--machine", name)...)
	m.src = f.store
	return m
}

// status returns what xdspub status says of the fleet.
func (f *etcdFleet) status(t *testing.T) string {
	t.Helper()
	out, stderr, _ := xdspub(t, "status", "--store", f.store)
	return out + stderr
}

func cluster(name, timeout string) string {
	return fmt.Sprintf(`{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: %s, connect_timeout: %s}`, name, timeout)
}

// answeringText returns a listener that answers with a text.
func answeringText(port int, text string) string {
	return fmt.Sprintf(`"@type": type.googleapis.com/envoy.config.listener.v3.Listener
name: web
address: {socket_address: {address: 127.0.0.1, port_value: %d}}
filter_chains:
- filters:
  - name: http
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
      stat_prefix: web
      http_filters: [{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
      %s
`, port, answering(text))
}

// TestFleetOnEtcd: a machine has the files of the writer, by an encrypted store. Without etcd, and after a kill -9 of
// its watch, its Envoy starts with the last valid snapshot. When etcd is back, the machine has the next change.
func TestFleetOnEtcd(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	port := envoytest.FreePort(t)
	keys := ageKeys(t)
	f := startEtcdFleet(t, map[string]string{"web.yaml": answeringText(port, "one"), "a.yaml": cluster("a", "1s")}, "--encrypt-secrets", keys)
	m := f.machine(t, "m1")
	m.http = filepath.Join(shortDir(t), "http")
	m.args = append(m.args, "--max-stale", "100ms")
	m.startWatch(t)
	m.startEnvoy(t)
	answers := func(text string) {
		t.Helper()
		envoytest.Eventually(t, patience, "the answer "+text, func() (bool, string) {
			status, body, err := envoytest.Get(t, fmt.Sprintf("http://%s/", address(port)))
			return err == nil && body == text, fmt.Sprint(status, body, err)
		})
	}
	answers("one")
	for _, name := range []string{"cds/cds.json", "lds/lds.json"} {
		writers, machines := &fixture{src: f.out}, &fixture{src: m.out}
		if diff := cmp.Diff(writers.read(t, name), machines.read(t, name)); diff != "" {
			t.Errorf("the machine has another %s than the writer:\n%s", name, diff)
		}
	}
	envoytest.Eventually(t, patience, "the machine is in sync", func() (bool, string) {
		is := f.status(t)
		return strings.HasPrefix(is, "in sync: 1 machine\n"), is
	})

	f.etcd.End(t)
	m.watch.Signal(t, syscall.SIGKILL)
	m.watch.Wait(t)
	m.envoy.Stop(t)
	m.startEnvoy(t)
	answers("one")
	m.beginWatch(t)
	m.watch.WaitLog(t, "event=watching ")
	f.write(t, "web.yaml", answeringText(port, "two")) // the writer publishes its own files
	f.watch.WaitLog(t, "event=published ")
	answers("one")
	statusOf := func(want string) {
		t.Helper()
		envoytest.Eventually(t, patience, "the status of the writer", func() (bool, string) {
			out, stderr, _ := xdspub(t, "status", "--out", f.out)
			return strings.Contains(out, want), out + stderr
		})
	}
	statusOf("not in sync: the store can't be written since ")
	f.etcd.Run(t)
	answers("two")
	f.watch.WaitLog(t, "event=store-published ")
	statusOf("\n  store " + f.store + ": has snapshot ")
	f.write(t, "broken.yaml", "name: [")
	f.watch.WaitLog(t, "event=source-invalid ")
	if status := f.status(t); !strings.Contains(status, "2 resources, encrypted") {
		t.Errorf("an invalid source tree has moved the head:\n%s", status)
	}
	becomes(t, "the readiness", "200 ok", func() string { return readiness(t, m.http) })
	if _, err := f.etcd.Client(t).Put(t.Context(), "/fleet/heads/-", "nonsense"); err != nil {
		t.Fatal(err)
	}
	becomes(t, "the readiness with a damaged head", "503 not ready", func() string { return readiness(t, m.http) })
	if status := f.status(t); !strings.HasPrefix(status, "not in sync: 1 machine, a damaged head, 1 behind\n  head: the key /fleet/heads/- holds something else") {
		t.Errorf("the status with a damaged head:\n%s", status)
	}
	answers("two")
}

// TestReplicasOnEtcd: a client that goes from one serve to another gets nothing that it has, and then the changes only.
func TestReplicasOnEtcd(t *testing.T) {
	t.Parallel()
	f := startEtcdFleet(t, map[string]string{"a.yaml": cluster("a", "1s"), "b.yaml": cluster("b", "1s")})
	dir := shortDir(t)
	versions := make(map[string]string)
	for _, name := range []string{"one", "two"} {
		socket := filepath.Join(dir, name)
		s := start(t, watcher, "serve", "--grpc", "unix:"+socket, "--machine", name, f.store)
		s.WaitLog(t, "event=published ")
		c := connectDelta(t, socket, versions)
		if name == "two" {
			f.write(t, "a.yaml", cluster("a", "2s"))
		}
		for got := 0; got == 0; { // an answer without resources says that the client has all
			r, err := c.Recv()
			if err != nil {
				t.Fatal(err)
			}
			for _, is := range r.Resources {
				got++
				if versions[is.Name] == is.Version || name == "two" && is.Name != "a" {
					t.Errorf("%s sends %s, which the client has", name, is.Name)
				}
				versions[is.Name] = is.Version
			}
		}
	}
	if len(versions) != 2 {
		t.Errorf("%v", versions)
	}
}

// connectDelta returns a stream that has asked for all clusters, and that has versions of clusters already.
func connectDelta(t *testing.T, socket string, versions map[string]string) grpc.BidiStreamingClient[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse] {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(t.Context())
	if err == nil {
		err = s.Send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "n"}, TypeUrl: xds.Cluster.URL(), InitialResourceVersions: versions})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ageKeys returns the path of a file with a new age key.
func ageKeys(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	own, err := age.GenerateHybridIdentity()
	if err == nil {
		err = os.WriteFile(path, []byte(own.String()), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestImportStore: with the age key, import makes the source tree of the writer from the head of an encrypted store.
func TestImportStore(t *testing.T) {
	t.Parallel()
	keys := ageKeys(t)
	f := startEtcdFleet(t, map[string]string{
		"web.yaml": answeringText(10000, "one"), "a.yaml": cluster("a", "1s"), "limits.yaml": `{"@type": type.googleapis.com/envoy.service.runtime.v3.Runtime, name: limits, layer: {a.b: 1}}`,
		"secret.yaml": `{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: token, generic_secret: {secret: {inline_string: hidden}}}`,
	}, "--encrypt-secrets", keys)
	dir := filepath.Join(t.TempDir(), "fleet")
	if out, stderr, exit := xdspub(t, "import", f.store, dir); exit != 3 || !strings.Contains(stderr, "nothing is written") {
		t.Errorf("without the key: exit status %d: %s%s", exit, out, stderr)
	}
	out := must(t, "import", "--encrypt-secrets", keys, f.store, dir)
	if want := fmt.Sprintf("%s: 4 resources in %s/config, and no bootstrap\n", f.store, dir); out != want {
		t.Errorf("import: %s, want %s", out, want)
	}
	must(t, "diff", f.src, dir+"/config")
	if info, err := os.Stat(dir + "/config/secrets/token.yaml"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the secret: %v, %v", info, err)
	}
	if out, stderr, exit := xdspub(t, "import", "--encrypt-secrets", keys, "--store-target", "eu", f.store, dir+"2"); exit != 3 {
		t.Errorf("a target that is not in the store: exit status %d: %s%s", exit, out, stderr)
	}
}

// revokeWriter ends the lease of the writer, as the end of its time does.
func (f *etcdFleet) revokeWriter(t *testing.T) {
	t.Helper()
	c := f.etcd.Client(t)
	r, err := c.Get(t.Context(), "/fleet/writers/-")
	if err != nil || len(r.Kvs) != 1 {
		t.Fatal(r, err)
	}
	if _, err := c.Revoke(t.Context(), clientv3.LeaseID(r.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
}

// TestSuspendedWriter: a writer that was suspended until its lease was over does not move the head when it goes on.
func TestSuspendedWriter(t *testing.T) {
	t.Parallel()
	f := startEtcdFleet(t, map[string]string{"a.yaml": cluster("a", "1s")})
	f.watch.Signal(t, syscall.SIGSTOP)
	f.write(t, "b.yaml", cluster("b", "1s")) // to be published once the writer goes on
	f.revokeWriter(t)
	other := newFixture(t, map[string]string{"c.yaml": cluster("c", "1s"), "d.yaml": cluster("d", "1s"), "e.yaml": cluster("e", "1s")}, "--store", f.store)
	other.startWatch(t)
	other.watch.WaitLog(t, "event=store-published ")
	f.watch.Signal(t, syscall.SIGCONT)
	f.watch.WaitLog(t, "event=published ")
	f.watch.WaitLog(t, "event=store-has-writer ")
	if status := f.status(t); !strings.Contains(status, "3 resources") {
		t.Errorf("the suspended writer has moved the head:\n%s", status)
	}
	other.watch.Signal(t, syscall.SIGKILL)
	other.watch.Wait(t)
	f.revokeWriter(t)
	f.watch.WaitLog(t, "event=store-published ")
	if status := f.status(t); !strings.Contains(status, "2 resources") {
		t.Errorf("the writer that waited has not moved the head:\n%s", status)
	}
}

// TestRolloutOnEtcd: the machine with the label of the first wave has a change first. After a kill -9 of the writer in
// the middle of a rollout, the next writer continues. What a machine refuses is taken back, and every view says so.
func TestRolloutOnEtcd(t *testing.T) {
	t.Parallel()
	f := &etcdFleet{etcd: etcdtest.Start(t)}
	f.store = "etcd://" + f.etcd.Endpoint + "/fleet"
	f.fixture = *newFixture(t, map[string]string{
		"a.yaml": cluster("a", "1s"), "web.yaml": answeringText(1, "one"), "xdspub.yaml": "rollout: {waves: [{label: tier=canary}], bake: 500ms}",
	}, "--store", f.store, "--quiet-period", "20ms", "--allow-removal")
	f.startWatch(t)
	f.watch.WaitLog(t, "event=store-published ")
	canary, other := f.machine(t, "m1"), f.machine(t, "m2")
	canary.startWatch(t, "--label", "tier=canary")
	other.startWatch(t)
	has := func(m *fixture, timeout string) {
		t.Helper()
		envoytest.Eventually(t, patience, "the timeout "+timeout, func() (bool, string) {
			text := (&fixture{src: m.out}).read(t, "cds/cds.json")
			return strings.Contains(text, timeout), text
		})
	}
	says := func(want string) {
		t.Helper()
		envoytest.Eventually(t, patience, want, func() (bool, string) {
			out, stderr, _ := xdspub(t, "rollout", "status", "--store", f.store)
			return strings.Contains(out, want), out + stderr
		})
	}
	sees := func(m *fixture, code int, shows ...string) {
		t.Helper()
		(&cell{Exit: &code, Shows: shows}).holds(t, "status of a machine", func() (string, int) {
			out, stderr, exit := xdspub(t, "status", "--out", m.out)
			return out + stderr, exit
		})
	}
	envoytest.Eventually(t, patience, "two machines", func() (bool, string) {
		is := f.status(t)
		return strings.HasPrefix(is, "in sync: 2 machines\n"), is
	})

	if out, stderr, exit := xdspub(t, "rollout", "pause", "--store", f.store, "--reason", "incident 42"); exit != 0 {
		t.Fatal(out, stderr, exit)
	}
	f.write(t, "a.yaml", cluster("a", "2s"))
	says("waits for its rollout: rollouts are paused by")
	if out, stderr, exit := xdspub(t, "rollout", "resume", "--store", f.store); exit != 0 {
		t.Fatal(out, stderr, exit)
	}
	has(canary, "2s")
	sees(canary, 0, "in sync: ", "\n  rollout: this machine is in wave 1 of 2 (tier=canary), and gets the candidate, snapshot v")
	sees(other, 0, "in sync: ", "\n  rollout: this machine is in wave 2 of 2 (all machines), and gets the base, snapshot v")
	f.watch.Signal(t, syscall.SIGKILL)
	f.watch.Wait(t)
	has(other, "1s")
	f.revokeWriter(t)
	f.startWatch(t)
	has(other, "2s")
	says("no rollout: all machines get the same snapshot")
	for _, m := range []*fixture{canary, other} {
		envoytest.Eventually(t, patience, "no rollout", func() (bool, string) {
			out, stderr, exit := xdspub(t, "status", "--out", m.out)
			return exit == 0 && !strings.Contains(out, "rollout"), out + stderr
		})
	}

	f.remove(t, "web.yaml") // the machines have no --allow-removal
	says("the machine m1 refuses the snapshot: ")
	for _, view := range [][]string{{"status", "--store", f.store}, {"status", "--out", f.out}} {
		if out, stderr, exit := xdspub(t, view...); exit != 1 || !strings.Contains(out, "was taken back in wave 1 of 2 (tier=canary)") {
			t.Errorf("%v: exit status %d: %s%s", view, exit, out, stderr)
		}
	}
	f.watch.WaitLog(t, "event=rollout-taken-back ")
	sees(other, 0, "in sync: ", " was taken back: the machine m1 refuses the snapshot: ", "; this machine gets snapshot v")
	f.write(t, "web.yaml", answeringText(1, "two"))
	f.watch.WaitLog(t, "event=rollout-done ")
	envoytest.Eventually(t, patience, "the fleet is in sync", func() (bool, string) {
		is := f.status(t)
		return strings.HasPrefix(is, "in sync: 2 machines\n"), is
	})
}
