package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"xdspub/render/publish"
	"xdspub/tools/envoytest"
)

// chaos is a watch that two Envoys confirm. Its steps disturb the watch and the Envoys.
type chaos struct {
	*soak // for its random numbers and pauses
	tree  chaosTree
	saved map[string]string // the files of the source tree
	past  []chaosTree

	ports     []int // of listeners; another program may take the last two
	scoped    int   // the port of the listener with scopes
	upstreams []int
	pairs     []pair

	admins  [2]int
	envoys  [2]*envoytest.Envoy // nil if the Envoy is down
	stopped [2]bool
	busy    map[int]net.Listener // the ports that another program has taken
}

// TestChaos edits a tree at random, with rollbacks, and with listeners on ports that may be taken. Meanwhile, the
// watch and the Envoys are killed, stopped and started, and the output directory is edited by hand and loses its
// records. From time to time, the test comes to rest. Then the published files are those of a cold render of the
// tree, and both Envoys run the configuration of a new Envoy, which refuses nothing. All retired resources are
// trimmed, and there are no other files.
//
// XDSPUB_CHAOS is the length of the test, such as 3m. XDSPUB_SOAK_SEED is the seed, which repeats the steps, but
// not their times.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("takes its time")
	}
	length, seed := dice(t, "XDSPUB_CHAOS", 8*time.Second, 1)
	t.Logf("again: XDSPUB_SOAK_SEED=%d scripts/soak %v Chaos", seed, length)
	c := newChaos(t, rand.New(rand.NewPCG(seed, 0)))
	for end := time.Now().Add(length); time.Now().Before(end); {
		for range 5 + c.rand.IntN(12) {
			c.step()
			c.pause(c.pick(0, 0, 10, 50, 100, 200, 400, 900))
		}
		c.rest()
	}
}

func newChaos(t *testing.T, random *rand.Rand) *chaos {
	envoytest.Binary(t)
	c := &chaos{soak: &soak{t: t, rand: random}, busy: make(map[int]net.Listener)}
	c.fixture = newFixture(t, nil, "--trim-delay", "2s", "--ack-timeout", "3s", "--warm-timeout", "3s", "--eds", "file", "--allow-removal")
	c.grow()
	for i := range c.envoys {
		c.admins[i] = envoytest.FreePort(t)
		c.args = append(c.args, "--envoy-admin", "http://"+address(c.admins[i]))
	}
	c.watches()
	c.watch.WaitLog(t, "event=published ")
	for i := range c.envoys {
		c.start(i)
	}
	return c
}

// grow fills the tree, and saves it.
func (c *chaos) grow() {
	for range 7 {
		c.ports = append(c.ports, envoytest.FreePort(c.t))
	}
	c.scoped = envoytest.FreePort(c.t)
	for _, name := range []string{"blue", "green"} {
		c.upstreams = append(c.upstreams, envoytest.NewUpstream(c.t, name).Port())
		c.pairs = append(c.pairs, newPair(c.t, name))
	}
	for range 40 {
		c.tree.edit(c)
	}
	c.tree.layer = 1 // the bootstrap names this layer
	c.save()
}

// watches starts a watch, and waits until the watch handles SIGHUP.
func (c *chaos) watches() {
	c.beginWatch(c.t, "--quiet-period", "50ms")
	c.watch.WaitLog(c.t, "event=watching")
}

func (c *chaos) start(i int) {
	c.admin = c.admins[i]
	// Draining listeners end soon.
	c.envoys[i] = envoytest.Start(c.t, envoytest.Options{Bootstrap: c.bootstrap(c.t), Args: []string{"--drain-time-s", "1", "--parent-shutdown-time-s", "2"}})
}

// step makes one random edit or disturbance.
func (c *chaos) step() {
	c.steps++
	edits := []struct {
		name string
		do   func() string
	}{
		{"edit", c.edit}, {"edit", c.edit}, {"edit", c.edit}, {"edit", c.edit}, {"edit", c.edit}, {"edit", c.edit}, {"edit", c.edit}, {"edit", c.edit},
		{"back", c.back}, {"end of the watch", c.interrupt}, {"end of the watch", c.interrupt},
		{"to and fro", c.toAndFro}, {"to and fro", c.toAndFro},
		{"Envoy", c.turn}, {"Envoy", c.turn}, {"Envoy", c.turn}, {"Envoy", c.turn},
		{"connection", c.connect}, {"port", c.port}, {"port", c.port}, {"by hand", c.byHand}, {"record", c.forget},
		{"SIGHUP", func() string { c.watch.Signal(c.t, syscall.SIGHUP); return "" }},
		{"retry", c.retry}, {"status", c.ask},
	}
	edit := choose(c.soak, edits)
	c.t.Logf("%d %s %s", c.steps, edit.name, edit.do())
}

// edit makes some edits, which the watch may publish in one change or in several.
func (c *chaos) edit() string {
	var list []string
	for range 1 + c.rand.IntN(4) {
		list = append(list, c.tree.edit(c))
	}
	c.past = append(c.past, c.tree)
	c.save()
	return strings.Join(list, "; ")
}

// back sets the source tree to an earlier state.
func (c *chaos) back() string {
	if len(c.past) == 0 {
		return "to nothing"
	}
	c.tree = choose(c.soak, c.past)
	c.save()
	return ""
}

// interrupt makes edits, ends the watch, mostly in the middle of a change, and starts it again.
func (c *chaos) interrupt() string {
	what := c.edit()
	return fmt.Sprint(what, ": ", c.end())
}

func (c *chaos) end() syscall.Signal {
	c.pause(c.pick(0, 40, 60, 70, 80, 90, 100, 120, 150, 200, 300, 400))
	signal := choose(c.soak, []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM})
	c.watch.Signal(c.t, signal)
	c.watch.Wait(c.t)
	c.watches()
	return signal
}

// toAndFro makes some edits, reverts them and makes them again. The watch ends in the middle of the last two
// changes, so that removed resources come back, and are removed again.
func (c *chaos) toAndFro() string {
	before := c.tree
	what := c.edit()
	after := c.tree
	c.pause(c.pick(100, 400, 900))
	for _, tree := range []chaosTree{before, after} {
		c.tree = tree
		c.save()
		what = fmt.Sprint(what, ": ", c.end())
	}
	return what
}

// turn kills or stops an Envoy, or makes it run again.
func (c *chaos) turn() string {
	i := c.rand.IntN(len(c.envoys))
	switch {
	case c.envoys[i] == nil:
		c.start(i)
		return fmt.Sprint(i, " starts")
	case c.stopped[i]:
		c.envoys[i].Signal(c.t, syscall.SIGCONT)
		c.stopped[i] = false
		return fmt.Sprint(i, " goes on")
	case c.rand.IntN(2) == 0:
		c.envoys[i].Signal(c.t, syscall.SIGSTOP)
		c.stopped[i] = true
		return fmt.Sprint(i, " stops")
	}
	c.envoys[i].Kill(c.t)
	c.envoys[i] = nil
	return fmt.Sprint(i, " is killed")
}

// connect opens a connection, which keeps its listener draining after a change.
func (c *chaos) connect() string {
	l := choose(c.soak, c.tree.listeners[:])
	conn, err := net.Dial("tcp", address(c.ports[l.port]))
	if err != nil {
		return err.Error()
	}
	c.t.Cleanup(func() { conn.Close() })
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	return ""
}

// port makes another program take a port that no Envoy has, or release it.
func (c *chaos) port() string {
	port := choose(c.soak, c.ports[len(c.ports)-2:])
	if l := c.busy[port]; l != nil {
		l.Close()
		delete(c.busy, port)
		return fmt.Sprint(port, " is free")
	}
	text, err := os.ReadFile(filepath.Join(c.out, "lds/lds.json"))
	if err != nil || c.envoys[0] == nil || c.envoys[1] == nil || strings.Contains(string(text), fmt.Sprint(port)) {
		return "stays as it is" // an Envoy that starts must accept the published files
	}
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return err.Error()
	}
	c.t.Cleanup(func() { l.Close() })
	c.busy[port] = l
	return fmt.Sprint(port, " is busy")
}

// byHand edits a published file by a rename, which Envoy sees, or in place, which Envoy does not see, or removes a
// file.
func (c *chaos) byHand() string {
	m, err := publish.ReadManifest(c.out)
	c.must(err)
	if m.Files.IsZero() {
		return "nothing" // there is no record
	}
	name := filepath.Join(c.out, choose(c.soak, m.Files.Names()))
	data, err := os.ReadFile(name)
	if err != nil {
		return err.Error() // trimmed meanwhile
	}
	how := choose(c.soak, []string{"space", "version", "in place", "remove"})
	switch {
	case how == "space":
		envoytest.Publish(c.t, name, string(data)+" ")
	case how == "version":
		envoytest.Publish(c.t, name, strings.Replace(string(data), `"version_info"`, `"version_info": "hand", "nonce"`, 1))
	case how == "remove" && strings.Contains(name, "/eds/"):
		c.must(os.Remove(name))
	default:
		c.must(os.WriteFile(name, append(data, '\n'), 0o644))
		how = "in place"
	}
	return how + " " + name
}

// forget removes the records of the output directory. It does nothing while a port is busy: without records, the
// watch could not roll back a refused change.
func (c *chaos) forget() string {
	if len(c.busy) > 0 {
		return "stays"
	}
	err := os.RemoveAll(filepath.Join(c.out, ".xdspub"))
	if err != nil { // the watch put something there
		return err.Error()
	}
	return "is gone"
}

func (c *chaos) retry() string {
	_, stderr, exit := xdspub(c.t, append(append([]string{"render", "--retry-held"}, c.args...), c.src)...)
	return fmt.Sprintf("exit status %d\n%s", exit, stderr)
}

func (c *chaos) ask() string {
	stdout, stderr, exit := c.statusOf(c.admins[:]...)
	if exit > 1 {
		c.t.Errorf("status: exit status %d\n%s%s", exit, stdout, stderr)
	}
	return fmt.Sprint(exit)
}

func (c *chaos) statusOf(admins ...int) (stdout, stderr string, exit int) {
	args := []string{"status", "--out", c.out}
	for _, port := range admins {
		args = append(args, "--envoy-admin", "http://"+address(port))
	}
	return xdspub(c.t, args...)
}
