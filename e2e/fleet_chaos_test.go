package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"xdspub/source/load"
	"xdspub/store"
	"xdspub/tools/certs"
	"xdspub/tools/envoytest"
	"xdspub/tools/etcdtest"
	"xdspub/xds"
)

// fleetChaos is a fleet: an etcd, a writer, servers that follow the store, the clients of these servers, and machines
// that follow the store. Its steps disturb each part.
type fleetChaos struct {
	*chaos // for the source tree of the writer, its random numbers and its edits

	nodes    []*etcdtest.Server
	down     []bool   // by node
	network  *network // nil if there is only one node
	store    string   // the address
	options  store.Options
	byTLS    []string // flags for the store
	replicas []*replica
	byFiles  []byte // the bootstrap of an Envoy that reads files
	envoys   []*envoytest.Envoy
	clients  []*follower
	files    *fixture // follows the store by xdspub watch, and has an Envoy
	machines []*machine
}

// replica is an xdspub serve that follows the store.
type replica struct {
	name, socket string
	server       *process
}

// TestFleetChaos edits the source tree of a fleet at random. Meanwhile, each part is killed and starts again, the etcd
// is compacted, and nodes of the etcd lose the other nodes or their clients. From time to time, the test comes to rest.
// Then all files and all Envoys have what a cold render makes, all machines have acknowledged the head, and no server
// has sent a change twice.
//
// XDSPUB_FLEET is the length of the test, such as 10m: then the fleet has 3 nodes, each in a network namespace, 3
// servers, 20 Envoys and 1,000 machines. XDSPUB_SOAK_SEED is the seed of the test.
func TestFleetChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("takes its time")
	}
	length, seed := dice(t, "XDSPUB_FLEET", 0, 1)
	t.Logf("again: XDSPUB_SOAK_SEED=%d scripts/soak %v fleet", seed, length)
	nodes, replicas, envoys, clients, machines := 1, 2, 1, 2, 20
	if length > 0 {
		nodes, replicas, envoys, clients, machines = 3, 3, 19, 10, 1000
	}
	f := newFleetChaos(t, seed, nodes)
	for i := range replicas {
		f.replicas = append(f.replicas, &replica{name: fmt.Sprint("replica-", i), socket: filepath.Join(shortDir(t), "xds.sock")})
		f.serve(f.replicas[i])
		f.replicas[i].server.WaitLog(t, "event=published ")
	}
	for i := range envoys {
		f.envoys = append(f.envoys, nil)
		f.startEnvoy(i)
	}
	for i := range clients {
		f.clients = append(f.clients, startFollower(t, f.rand, transports[1], f.replicas[i%replicas].socket, f.names()))
	}
	for i := range machines {
		f.machines = append(f.machines, &machine{name: fmt.Sprintf("machine-%04d", i)})
		f.machines[i].start(f)
	}
	t.Cleanup(func() {
		for _, m := range f.machines {
			m.end()
		}
	})
	all := f.disturbances()
	for _, i := range f.rand.Perm(len(all)) {
		f.step(all[i])
	}
	f.rest()
	for end := time.Now().Add(length); time.Now().Before(end); f.rest() {
		for range 8 + f.rand.IntN(10) {
			f.step(choose(f.soak, all))
		}
	}
	f.moves()
}

// newFleetChaos returns a fleet with an etcd of some nodes, a writer, and a machine with an Envoy that reads files.
func newFleetChaos(t *testing.T, seed uint64, nodes int) *fleetChaos {
	envoytest.Binary(t)
	f := &fleetChaos{chaos: &chaos{soak: &soak{t: t, rand: rand.New(rand.NewPCG(seed, 0))}}, down: make([]bool, nodes)}
	f.startStore(nodes)
	f.fixture = newFixture(t, nil, fleetFlags...)
	f.grow()
	f.writes()
	f.watch.WaitLog(t, "event=store-published ")
	f.byFiles = f.bootstrap(t)
	f.files = newFixture(t, nil, slices.Concat(fleetFlags, f.byTLS, []string{"--machine", "files"})...)
	f.files.src = f.store
	f.files.startWatch(t)
	f.files.envoy = envoytest.Start(t, envoytest.Options{Bootstrap: f.files.bootstrap(t), Args: drainsSoon})
	return f
}

// drainsSoon are flags of an Envoy whose draining listeners end soon.
var drainsSoon = []string{"--drain-time-s", "1", "--parent-shutdown-time-s", "2", "--concurrency", "1"}

// startStore starts an etcd of some nodes. Several nodes run in a network, so that their clients need TLS.
func (f *fleetChaos) startStore(nodes int) {
	t := f.t
	places, options := []etcdtest.Place{{Host: "127.0.0.1", Peer: "127.0.0.1"}}, []string{"--heartbeat-interval=100", "--election-timeout=1000"}
	ca, dir := certs.NewAuthority(t), t.TempDir()
	if nodes > 1 {
		f.network = newNetwork(t, nodes)
		places = f.network.places
		var names []string
		for _, at := range places {
			names = append(names, at.Host)
		}
		cert, key := ca.Sign(2, names...)
		for name, data := range map[string][]byte{"ca": ca.PEM(), "cert": cert, "key": key} {
			f.must(os.WriteFile(filepath.Join(dir, name), data, 0o600))
		}
		f.options.CA = filepath.Join(dir, "ca")
		f.byTLS = []string{"--store-ca", f.options.CA}
		options = append(options, "--cert-file="+filepath.Join(dir, "cert"), "--key-file="+filepath.Join(dir, "key"))
	}
	f.nodes = etcdtest.StartAt(t, places, options...)
	var endpoints []string
	for _, s := range f.nodes {
		endpoints = append(endpoints, s.Endpoint)
		if nodes > 1 {
			s.TLS = &tls.Config{RootCAs: pool(t, f.options.CA)}
		}
	}
	f.store = store.Scheme + strings.Join(endpoints, ",") + "/fleet"
	var err error
	f.options.Address, err = store.ParseAddress(f.store)
	f.must(err)
}

// fleetFlags are flags of watch and render.
var fleetFlags = []string{"--eds", "file", "--allow-removal", "--trim-delay", "500ms"}

// writes starts the writer.
func (f *fleetChaos) writes() {
	f.beginWatch(f.t, append(f.byTLS, "--quiet-period", "50ms", "--store", f.store)...)
}

// serve starts a server.
func (f *fleetChaos) serve(r *replica) {
	os.Remove(r.socket) // a killed server leaves its socket
	args := []string{"serve", "--grpc", "unix:" + r.socket, "--machine", r.name, "--allow-removal", "--trim-delay", "500ms", "--drain-time", "100ms"}
	r.server = start(f.t, watcher, append(append(args, f.byTLS...), f.store)...)
}

// startEnvoy starts an Envoy, which asks any of the servers.
func (f *fleetChaos) startEnvoy(i int) {
	one := fmt.Sprintf(`{"endpoint":{"address":{"pipe":{"path":%q}}}}`, f.replicas[0].socket)
	var all []string
	for n := range f.replicas {
		all = append(all, strings.Replace(one, f.replicas[0].socket, f.replicas[(i+n)%len(f.replicas)].socket, 1))
	}
	bootstrap := string((&servedTree{socket: f.replicas[0].socket}).served(f.t, f.byFiles, transports[1]))
	f.envoys[i] = envoytest.Start(f.t, envoytest.Options{
		Bootstrap: []byte(strings.Replace(bootstrap, one, strings.Join(all, ","), 1)),
		Args:      drainsSoon,
	})
}

// names returns the names that a client asks for.
func (f *fleetChaos) names() map[*xds.Type][]string {
	names := map[*xds.Type][]string{xds.Secret: {"server", "client"}, xds.Runtime: {"flags"}, xds.ExtensionConfig: {"marker"}}
	for i := range f.tree.clusters {
		names[xds.Endpoints] = append(names[xds.Endpoints], fmt.Sprint("c", i))
	}
	for i := range f.tree.routes {
		names[xds.RouteConfiguration] = append(names[xds.RouteConfiguration], fmt.Sprint("r", i))
	}
	return names
}

// disturbance is a kind of step. do makes the step, and returns what it did.
type disturbance struct {
	name string
	do   func() string
}

// disturbances returns the kinds of steps, the frequent ones several times.
func (f *fleetChaos) disturbances() []disturbance {
	all := []disturbance{
		{"edit", f.edit}, {"edit", f.edit}, {"edit", f.edit}, {"edit", f.edit}, {"edit", f.edit}, {"edit", f.edit}, {"back", f.back},
		{"writer", f.turnWriter}, {"server", f.turnReplica}, {"server", f.turnReplica}, {"Envoy", f.turnEnvoy}, {"client", f.turnClient},
		{"client", f.turnClient}, {"files", f.turnFiles}, {"machines", f.turnMachines}, {"node", f.turnNode}, {"compaction", f.compact},
	}
	if f.network != nil {
		all = append(all, disturbance{"network", f.cut}, disturbance{"network", f.cut}, disturbance{"network", f.heal})
	}
	return all
}

// step disturbs the fleet, and pauses.
func (f *fleetChaos) step(d disturbance) {
	f.steps++
	f.t.Logf("%d %s %s", f.steps, d.name, d.do())
	f.pause(f.pick(0, 0, 10, 50, 100, 200, 400))
}

// edit changes some resources, and no address of a listener: an exchange of addresses may need several changes.
func (f *fleetChaos) edit() string {
	var list []string
	for range 1 + f.rand.IntN(4) {
		g := &f.tree
		i, j, k := f.rand.IntN(len(g.clusters)), f.rand.IntN(len(g.routes)), f.rand.IntN(len(g.listeners))
		switch f.rand.IntN(6) {
		case 0:
			g.clusters[i].kind = choose(f.soak, []string{"", "static", "eds", "tls", "eds"})
			list = append(list, fmt.Sprintf("c%d is %q", i, g.clusters[i].kind))
		case 1:
			g.clusters[i].value++
			list = append(list, fmt.Sprintf("c%d changes", i))
		case 2:
			g.clusters[i].endpoints++
			list = append(list, fmt.Sprintf("c%d has other endpoints", i))
		case 3:
			g.routes[j].value++
			g.routes[j].clusters[f.rand.IntN(2)] = i
			list = append(list, fmt.Sprintf("r%d changes", j))
		case 4:
			g.listeners[k].value++
			list = append(list, fmt.Sprintf("l%d changes", k))
		case 5:
			g.secret++
			g.marker++
			list = append(list, "the secret changes")
		}
		g.mend(f.chaos)
	}
	f.past = append(f.past, f.tree)
	f.save()
	return strings.Join(list, "; ")
}

// end kills a process.
func (f *fleetChaos) end(p *process) {
	p.Signal(f.t, syscall.SIGKILL)
	p.Wait(f.t)
}

// turnWriter makes edits, kills the writer, and starts the writer again. Most kills come in the middle of a change.
func (f *fleetChaos) turnWriter() string {
	what := f.edit()
	f.pause(f.pick(0, 20, 50, 60, 80, 100, 200, 400))
	f.end(f.watch)
	what += "; " + f.edit()
	f.writes()
	f.watch.WaitLog(f.t, "event=watching")
	return what
}

func (f *fleetChaos) turnReplica() string {
	r := choose(f.soak, f.replicas)
	f.end(r.server)
	f.pause(f.pick(0, 0, 100, 1000))
	f.serve(r)
	return r.name
}

func (f *fleetChaos) turnEnvoy() string {
	i := f.rand.IntN(len(f.envoys))
	if f.envoys[i] == nil {
		f.startEnvoy(i)
		return fmt.Sprint(i, " starts")
	}
	f.envoys[i].Kill(f.t)
	f.envoys[i] = nil
	return fmt.Sprint(i, " is killed")
}

func (f *fleetChaos) turnClient() string {
	i, r := f.rand.IntN(len(f.clients)), choose(f.soak, f.replicas)
	f.clients[i].move(r.socket)
	return fmt.Sprint(i, " moves to ", r.name)
}

func (f *fleetChaos) turnFiles() string {
	f.end(f.files.watch)
	f.files.beginWatch(f.t)
	return ""
}

// turnMachines makes a tenth of the machines start again.
func (f *fleetChaos) turnMachines() string {
	first := f.rand.IntN(10)
	for i := first; i < len(f.machines); i += 10 {
		f.machines[i].end()
	}
	for i := first; i < len(f.machines); i += 10 {
		f.machines[i].start(f)
	}
	return fmt.Sprint(first)
}

func (f *fleetChaos) turnNode() string {
	i := f.rand.IntN(len(f.nodes))
	if f.down[i] = !f.down[i]; f.down[i] {
		f.nodes[i].End(f.t)
		return fmt.Sprint(i, " is killed")
	}
	f.nodes[i].Begin(f.t)
	return fmt.Sprint(i, " starts")
}

// compact makes the etcd forget all old revisions, if the etcd answers.
func (f *fleetChaos) compact() string {
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
	defer cancel()
	i := f.rand.IntN(len(f.nodes))
	c := f.nodes[i].Client(f.t)
	defer c.Close()
	r, err := c.Get(ctx, "/none")
	if err == nil {
		_, err = c.Compact(ctx, r.Header.Revision)
	}
	return fmt.Sprint(err)
}

// cut cuts a node off from the other nodes, or from the clients.
func (f *fleetChaos) cut() string {
	i, from := f.rand.IntN(len(f.nodes)), choose(f.soak, []string{peers, clientsOf})
	f.network.cut(i, from)
	return fmt.Sprint(i, " is cut off from ", from)
}

func (f *fleetChaos) heal() string {
	f.network.heal()
	return "is whole"
}

// rest ends all disturbances, and waits for the state that TestFleetChaos describes.
func (f *fleetChaos) rest() {
	t := f.t
	t.Helper()
	if f.network != nil {
		f.network.heal()
	}
	for i, down := range f.down {
		if f.down[i] = false; down {
			f.nodes[i].Begin(t)
		}
	}
	for i, e := range f.envoys {
		if e == nil {
			f.startEnvoy(i)
		}
	}
	id := f.compare(f.fixture)
	f.compare(f.files)
	f.acknowledged(id)
	for _, m := range f.machines {
		if is := m.snapshot(); is != id {
			t.Errorf("%s has snapshot %s, want %s", m.name, is, id)
		}
	}
	there := f.there()
	for i, c := range f.clients {
		envoytest.Eventually(t, patience, fmt.Sprintf("client %d has what the tree has", i), func() (bool, string) {
			differs := c.differs(t, there)
			return len(differs) == 0, strings.Join(differs, "\n")
		})
	}
	f.sentTwice()
	cold := &fixture{src: f.src, out: f.cold(f.fixture, false), admin: envoytest.FreePort(t)}
	fresh := envoytest.Start(t, envoytest.Options{Bootstrap: cold.bootstrap(t)})
	want := configuration(t, fresh)
	fresh.Stop(t)
	for _, e := range f.envoys {
		(&servedTree{}).runs(t, transports[1], e, want)
	}
	(&servedTree{}).runs(t, transport{name: "files"}, f.files.envoy, want)
}

// sentTwice fails the test if a client or a machine was sent a resource that it had.
func (f *fleetChaos) sentTwice() {
	f.t.Helper()
	for i, c := range f.clients {
		c.mu.Lock()
		if len(c.twice) > 0 {
			f.t.Errorf("client %d was sent twice: %v", i, c.twice)
		}
		c.mu.Unlock()
	}
	for _, m := range f.machines {
		m.mu.Lock()
		if len(m.twice) > 0 {
			f.t.Errorf("%s was sent twice: %v", m.name, m.twice)
		}
		m.mu.Unlock()
	}
}

// cold renders the tree of the writer into an empty directory, and returns the directory. If as is true, the paths in
// the files are those of the directory of s.
func (f *fleetChaos) cold(s *fixture, as bool) string {
	f.t.Helper()
	cold := filepath.Join(f.t.TempDir(), "cold")
	args := append([]string{"render", "--out", cold}, fleetFlags...)
	if as {
		real, err := filepath.EvalSymlinks(s.out)
		f.must(err)
		args = append(args, "--envoy-path", real)
	}
	if _, stderr, exit := xdspub(f.t, append(args, f.src)...); exit != 0 {
		f.t.Fatalf("the tree is not what this test meant it to be: exit status %d\n%s", exit, stderr)
	}
	return cold
}

// compare waits until the files of s are those of a cold render, and returns the id of the snapshot.
func (f *fleetChaos) compare(s *fixture) (id string) {
	f.t.Helper()
	cold := f.cold(s, true)
	want := f.snapshot(cold)
	envoytest.Eventually(f.t, patience, "the files are those of a cold render", func() (bool, string) {
		diff := cmp.Diff(want, f.snapshot(s.out))
		return diff == "", "(-cold +out)\n" + diff
	})
	text, stderr, _ := xdspub(f.t, "status", "--out", cold, "--format", "json")
	var is struct {
		Published struct{ Snapshot string }
	}
	if err := json.Unmarshal([]byte(text), &is); err != nil || is.Published.Snapshot == "" {
		f.t.Fatalf("%v: %s%s", err, text, stderr)
	}
	return is.Published.Snapshot
}

// acknowledged waits until all machines have acknowledged a snapshot.
func (f *fleetChaos) acknowledged(id string) {
	f.t.Helper()
	envoytest.Eventually(f.t, patience, "all machines have acknowledged "+id, func() (bool, string) {
		r, err := store.Ask(f.t.Context(), f.options, "")
		if err != nil {
			return false, err.Error()
		}
		is := r.Targets[0]
		counts := make(map[store.Standing]int)
		for _, m := range is.Machines {
			counts[m.Standing]++
		}
		return r.InSync && is.Head.Snapshot == id && len(is.Machines) == len(f.machines)+len(f.replicas)+1,
			fmt.Sprintf("head %s, writer %q, %v", is.Head.Snapshot, is.Writer, counts)
	})
}

// moves kills each server, so that its clients ask the other servers. moves fails the test if an Envoy gets a resource:
// no resource has changed.
func (f *fleetChaos) moves() {
	t := f.t
	t.Helper()
	stats := func() (all []map[string]string) {
		for _, e := range f.envoys {
			all = append(all, e.Stats(t, `^(cluster_manager\.cluster|listener_manager\.listener)_(added|modified|removed)$`))
		}
		return all
	}
	before := stats()
	for _, r := range f.replicas {
		f.end(r.server)
		f.serve(r)
		r.server.WaitLog(t, "event=published ")
	}
	envoytest.Eventually(t, patience, "all clients are connected", func() (bool, string) {
		n, said := 0, ""
		for _, r := range f.replicas {
			text, stderr, exit := xdspub(t, "status", "--serve", "unix:"+r.socket, "--format", "json")
			var is struct{ Clients []struct{ Node string } }
			if err := json.Unmarshal([]byte(text), &is); err != nil || exit != 0 {
				return false, text + stderr
			}
			n += len(is.Clients)
			said += fmt.Sprintln(r.name, len(is.Clients))
		}
		return n >= len(f.envoys)+len(f.clients), said
	})
	if diff := cmp.Diff(before, stats()); diff != "" {
		t.Errorf("Envoys at another server get what they have (-before +after):\n%s", diff)
	}
	f.sentTwice()
}

// machine is a simulated machine: it accepts whatever it follows.
type machine struct {
	name string
	end  func()

	mu    sync.Mutex
	has   load.Contents
	twice []string
}

// start makes the machine follow the store. Call end before another start.
func (m *machine) start(f *fleetChaos) {
	is := store.NewFollower(store.FollowerOptions{Options: f.options, Machine: m.name, Acknowledge: true})
	ctx, cancel := context.WithCancel(context.Background())
	m.has = load.Contents{}
	var running sync.WaitGroup
	running.Go(func() { is.Run(ctx) })
	running.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
				return
			case <-is.Changed():
			}
			if c, err := is.Read(ctx); err == nil && c.N > m.has.N {
				m.take(c)
				is.Judged(load.Judgement{N: c.N, Accepted: true})
			}
		}
	})
	m.end = func() {
		cancel()
		running.Wait()
	}
}

// take replaces the contents of the machine. If the next contents have a new file with the resources of the former
// file, the store has sent these resources twice. Contents in between may have other resources, so take compares only
// successive contents.
func (m *machine) take(c load.Contents) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, file := range c.Files {
		for _, was := range m.has.Files {
			if c.N == m.has.N+1 && was != file && was.Source.Name == file.Source.Name && idOf(was.Resources) == idOf(file.Resources) {
				m.twice = append(m.twice, file.Source.Name)
			}
		}
	}
	m.has = c
}

func idOf(list []*xds.Resource) string { return xds.NewSnapshot(list).ID() }

// snapshot returns the id of the snapshot that the machine has.
func (m *machine) snapshot() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []*xds.Resource
	for _, file := range m.has.Files {
		list = append(list, file.Resources...)
	}
	return idOf(list)
}
