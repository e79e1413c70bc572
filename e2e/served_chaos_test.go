package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/check"
	"xdspub/tools/envoytest"
	"xdspub/xds"
)

// servedChaos is a served tree with clients of all kinds. Its steps disturb the server and the clients.
type servedChaos struct {
	*chaos // for the tree, its random numbers and its edits
	served *servedTree

	byFiles   []byte // the bootstrap of an Envoy that reads files
	envoys    []*envoytest.Envoy
	stopped   []bool
	followers []*follower
	backends  map[string]int // the ports of the backends of the grpc-go client, by name
	wants     string         // the backend that the client has to call
	calls     *calls
	files     string // the output directory of the server; "" for none
	restarted bool   // the server was restarted since the last rest
}

// TestServedChaos edits a served tree at random. Meanwhile, the server is killed and started, Envoys stop, continue
// and start again, and clients read late, refuse, disconnect and stop reading. From time to time, the test comes to
// rest. Then each client has the resources of the tree, and each Envoy runs the configuration of an Envoy that
// reads a cold render from files.
//
// XDSPUB_SERVED_CHAOS is the length of the test, such as 3m, and XDSPUB_SOAK_SEED its seed.
func TestServedChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("takes its time")
	}
	length, seed := dice(t, "XDSPUB_SERVED_CHAOS", 8*time.Second, 1)
	t.Logf("again: XDSPUB_SOAK_SEED=%d scripts/soak %v ServedChaos", seed, length)
	c := newServedChaos(t, seed)
	for end := time.Now().Add(length); time.Now().Before(end); {
		for range 10 + c.rand.IntN(20) {
			c.step()
			c.pause(c.pick(0, 0, 10, 50, 100, 200, 400))
		}
		c.rest()
	}
}

func newServedChaos(t *testing.T, seed uint64) *servedChaos {
	random := rand.New(rand.NewPCG(seed, 0))
	envoytest.Binary(t)
	tree := serveTree(t, nil)
	c := &servedChaos{chaos: &chaos{soak: &soak{t: t, rand: random}}, served: tree, backends: map[string]int{"blue": newBackend(t, "blue"), "green": newBackend(t, "green")}}
	if seed%2 == 0 {
		c.files = filepath.Join(t.TempDir(), "files")
	}
	c.fixture = &tree.fixture
	c.out, c.admin = filepath.Join(t.TempDir(), "cold"), envoytest.FreePort(t)
	c.grow()
	tree.write(t, "listener.yaml", apiListener)
	c.moveBackend()
	c.serve()
	c.cold()
	c.byFiles = tree.bootstrap(t)
	names := map[*xds.Type][]string{xds.Secret: {"server", "client"}, xds.Runtime: {"flags"}, xds.ExtensionConfig: {"marker"}}
	for i := range c.tree.clusters {
		names[xds.Endpoints] = append(names[xds.Endpoints], fmt.Sprint("c", i))
	}
	for i := range c.tree.routes {
		names[xds.RouteConfiguration] = append(names[xds.RouteConfiguration], fmt.Sprint("r", i))
	}
	for _, k := range transports {
		c.envoys, c.stopped = append(c.envoys, nil), append(c.stopped, false)
		c.startEnvoy(len(c.envoys) - 1)
		for range 2 {
			dice := rand.New(rand.NewPCG(random.Uint64(), 0))
			c.followers = append(c.followers, startFollower(t, dice, k, tree.socket, names))
		}
	}
	c.calls = callAllTheTime(t, goClient(t, tree.grpcBootstrap(t, "go")))
	c.calls.become(t, c.wants) // without any resources, calls of the client would fail while the server is down
	return c
}

func (c *servedChaos) serve() {
	os.Remove(c.served.socket) // a killed server leaves its socket
	flags := []string{"--grpc", "unix:" + c.served.socket, "--trim-delay", "500ms", "--drain-time", "100ms", "--allow-removal"}
	if c.files != "" {
		flags = append(flags, "--out", c.files)
	}
	c.served.begin(c.t, flags...)
	// The server serves the published files if listeners have exchanged their addresses since.
	c.served.server.WaitMatch(c.t, regexp.MustCompile(`event=(published|serving-published) `))
}

func (c *servedChaos) startEnvoy(i int) {
	c.envoys[i] = envoytest.Start(c.t, envoytest.Options{Bootstrap: c.served.served(c.t, c.byFiles, transports[i]), Args: []string{"--drain-time-s", "1", "--parent-shutdown-time-s", "2"}})
}

// step makes one random edit or disturbance.
func (c *servedChaos) step() {
	c.steps++
	one := choose(c.soak, []struct {
		name string
		do   func() string
	}{
		{"edit", c.edit}, {"edit", c.edit}, {"edit", c.edit}, {"edit", c.edit}, {"edit", c.edit}, {"edit", c.edit}, {"back", c.back},
		{"backend", c.moveBackend}, {"fault", c.fault}, {"server", c.restart}, {"Envoy", c.turnEnvoy}, {"Envoy", c.turnEnvoy},
		{"client", c.turnClient}, {"client", c.turnClient}, {"client", c.turnClient}, {"client that never reads", c.stuck},
	})
	c.t.Logf("%d %s %s", c.steps, one.name, one.do())
}

// edit is chaos.edit, but keeps the layer that each bootstrap names. So does back.
func (c *servedChaos) edit() string {
	what := c.chaos.edit()
	return what + c.keepLayer()
}

func (c *servedChaos) back() string { return c.chaos.back() + c.keepLayer() }

func (c *servedChaos) keepLayer() string {
	if c.tree.layer > 0 {
		return ""
	}
	c.tree.layer = 1
	c.save()
	return "; the layer is 1"
}

// moveBackend makes the grpc-go client call another backend of the same cluster. It does not change the cluster:
// grpc-go asks for a new cluster after it has the route to it, and fails calls if the server goes down in between.
// Without an output directory, a restarted server also does not know that the client has the old cluster.
func (c *servedChaos) moveBackend() string {
	c.wants = choose(c.soak, []string{"blue", "green"})
	c.served.write(c.t, "api.yaml", apiCluster("api", c.backends[c.wants]))
	return c.wants
}

// fault saves an invalid file, and removes it again.
func (c *servedChaos) fault() string {
	c.served.write(c.t, "bad.yaml", routes("bad", "unknown"))
	c.pause(c.pick(0, 50, 200))
	c.served.remove(c.t, "bad.yaml")
	return ""
}

// restart makes edits, ends the server, mostly in the middle of a change, and starts it again.
func (c *servedChaos) restart() string {
	what := c.edit()
	c.pause(c.pick(0, 20, 50, 100, 200))
	signal := choose(c.soak, []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM})
	c.served.server.Signal(c.t, signal)
	c.served.server.Wait(c.t)
	what += "; " + c.edit()
	c.serve()
	c.restarted = true
	return fmt.Sprint(what, ": ", signal)
}

func (c *servedChaos) turnEnvoy() string {
	i := c.rand.IntN(len(c.envoys))
	name := transports[i].name
	switch {
	case c.envoys[i] == nil:
		c.startEnvoy(i)
		return name + " starts"
	case c.stopped[i]:
		c.envoys[i].Signal(c.t, syscall.SIGCONT)
		c.stopped[i] = false
		return name + " goes on"
	case c.rand.IntN(2) == 0:
		c.envoys[i].Signal(c.t, syscall.SIGSTOP)
		c.stopped[i] = true
		return name + " stops"
	}
	c.envoys[i].Kill(c.t)
	c.envoys[i] = nil
	return name + " is killed"
}

func (c *servedChaos) turnClient() string {
	i := c.rand.IntN(len(c.followers))
	f, what := c.followers[i], c.rand.IntN(5)
	switch what {
	case 0, 1:
		f.disconnect()
	case 2:
		f.refuse(c.rand.IntN(3) > 0)
	default:
		f.freeze(c.rand.IntN(2) == 0)
	}
	return fmt.Sprintf("%d (%s) %s", i, f.name, []string{"disconnects", "disconnects", "refuses or not", "freezes or not", "freezes or not"}[what])
}

// stuck starts a client that asks for all resources, and never reads a response until the test ends.
func (c *servedChaos) stuck() string {
	k := choose(c.soak, transports)
	f := startFollower(c.t, c.rand, k, c.served.socket, nil)
	f.freeze(true)
	return k.name
}

// rest makes the server and the clients run again, and waits until everything is as TestServedChaos says.
func (c *servedChaos) rest() {
	t := c.t
	t.Helper()
	for i, e := range c.envoys {
		switch {
		case e == nil:
			c.startEnvoy(i)
		case c.stopped[i]:
			e.Signal(t, syscall.SIGCONT)
			c.stopped[i] = false
		}
	}
	for _, f := range c.followers {
		f.refuse(false)
		f.freeze(false)
	}
	c.again()
	if c.restarted {
		c.restarted = false
		c.part()
	}
	there := c.there()
	for i, f := range c.followers {
		envoytest.Eventually(t, patience, fmt.Sprintf("client %d by %s has what the tree has", i, f.name), func() (bool, string) {
			differs := f.differs(t, there)
			return len(differs) == 0, strings.Join(differs, "\n")
		})
	}
	c.calls.become(t, c.wants)
	c.cold()
	c.admin = envoytest.FreePort(t)
	fresh := envoytest.Start(t, envoytest.Options{Bootstrap: c.fixture.bootstrap(t)})
	content(t, fresh)
	want := configuration(t, fresh)
	fresh.Stop(t)
	for i, e := range c.envoys {
		c.served.runs(t, transports[i], e, want)
	}
}

// again makes the server read the tree, and send refused resources again. If several edits, in one change, exchange
// the addresses of listeners, the server refuses the change; again then removes these listeners.
func (c *servedChaos) again() {
	c.t.Helper()
	answers := func() int {
		log := c.served.server.Log()
		return strings.Count(log, " reason=SIGHUP") + strings.Count(log, " event=source-invalid ")
	}
	for range 2 { // the first answer may be about a read before the signal
		before := answers()
		c.served.server.Signal(c.t, syscall.SIGHUP)
		envoytest.Eventually(c.t, patience, "the server reads the tree", func() (bool, string) { return answers() > before, c.served.server.Log() })
	}
	if log := c.served.server.Log(); strings.LastIndex(log, " code=address-swap ") > strings.LastIndex(log, " event=published ") {
		for i := range c.tree.listeners {
			c.tree.listeners[i].kind = ""
		}
		c.save()
		c.again()
	}
}

// part removes the listeners for a moment. If listeners exchanged their addresses while an Envoy was away, and the
// server was restarted, the Envoy can't accept the new listeners, and the server can't know the reason.
func (c *servedChaos) part() {
	c.t.Helper()
	tree := c.tree
	for i := range c.tree.listeners {
		c.tree.listeners[i].kind = ""
	}
	c.save()
	for i, e := range c.envoys {
		envoytest.Eventually(c.t, patience, "the Envoy by "+transports[i].name+" has no listeners", func() (bool, string) {
			list := strings.Join(configuration(c.t, e)["dynamic_listeners"], "")
			return !strings.Contains(list, `"stat_prefix": "l`), list
		})
	}
	c.tree = tree
	c.save()
	c.again()
}

// there returns the present resources of the tree in words, by type and name.
func (c *chaos) there() map[*xds.Type]map[string]string {
	t := c.t
	t.Helper()
	result, err := check.New(check.Options{Path: c.src}).Check(t.Context())
	if err != nil || !result.Accepted() {
		t.Fatal("the tree is not what this test meant it to be: ", err, result)
	}
	all := make(map[*xds.Type]map[string]string)
	for of := range services {
		all[of] = make(map[string]string)
		for _, r := range result.Snapshot.Of(of) {
			body, _ := r.Canonical()
			all[of][r.Name] = contentOf(t, &anypb.Any{TypeUrl: of.URL(), Value: body})
		}
	}
	return all
}

// cold renders the tree to an empty directory, and makes it the output directory.
func (c *servedChaos) cold() {
	c.out = filepath.Join(c.t.TempDir(), "cold")
	if _, stderr, exit := xdspub(c.t, "render", "--eds", "file", "--out", c.out, c.src); exit != 0 {
		c.t.Fatalf("exit status %d\n%s", exit, stderr)
	}
}
