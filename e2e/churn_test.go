package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"xdspub/tools/envoytest"
)

// TestTraffic publishes 10 generations to a busy Envoy under 200 requests a second. Envoy refuses no update. No
// request fails, neither on a new connection nor on an old connection to a draining listener or filter chain. Envoy
// removes the resources of old generations meanwhile, and after ten generations all of them.
//
// XDSPUB_TRAFFIC is another number of generations (scripts/traffic). If it is set, the test also publishes by plain
// renames in one directory, for comparison. It asserts nothing of these, because their result depends on timing.
func TestTraffic(t *testing.T) {
	if testing.Short() {
		t.Skip("takes its time")
	}
	t.Parallel()
	publishes, limit, contrast := 10, 40*time.Second, false
	if text := os.Getenv("XDSPUB_TRAFFIC"); text != "" {
		var err error
		if publishes, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		limit, contrast = time.Hour, true
	}
	c := newChurn(t, "xdspub")
	c.byXdspub(t)
	c.run(t, publishes, limit)
	runs := []*churn{c}
	once, kept := &c.traffic.once, &c.traffic.kept
	if c.refused > 0 || once.failed+kept.failed > 0 || 10*kept.crossed > kept.asked() {
		t.Errorf("%d updates refused, %d requests failed, %d crossed by a close:\n%s", c.refused, once.failed+kept.failed, kept.crossed, c.traffic.worst())
	}
	if kept.drained == 0 {
		t.Error("nothing that drained was asked for anything")
	}
	content(t, c.envoy)
	if contrast {
		c.envoy.Stop(t)
		plain := newChurn(t, "plain renames")
		plain.byPlainRenames(t)
		plain.run(t, publishes, limit)
		t.Logf("plain renames:\n%s", plain.traffic.worst())
		runs = append(runs, plain)
	}
	fmt.Fprint(t.Output(), table(runs))
}

const (
	pace      = 500 * time.Millisecond // the least time between the starts of two publishes
	round     = 10                     // the publishes after which the test waits until old resources are removed
	drainTime = 5 * time.Second
	least     = 5 // the publishes on the slowest machine
)

// churn is a run of generations, one after the other, under traffic.
type churn struct {
	*ground
	by      string // the way of publishing
	publish func(n int)
	// confirmed means that publish returns after Envoy runs the generation.
	confirmed bool

	envoy   *envoytest.Envoy
	admin   int // port of Envoy's admin interface
	traffic traffic

	publishes int
	refused   int        // the updates that Envoy refused
	dumps     int        // the dumps of its configuration that Envoy wrote to be busy
	dumped    func() int // returns the dumps so far
	length    time.Duration
}

func newChurn(t *testing.T, by string) *churn {
	envoytest.Binary(t) // a test without Envoy ends here
	return &churn{ground: newGround(t), by: by}
}

// start starts an Envoy with two workers and a short drain time.
func (c *churn) start(t *testing.T, bootstrap []byte) {
	c.envoy = envoytest.Start(t, envoytest.Options{Bootstrap: bootstrap, Args: []string{
		"--concurrency", "2", "--drain-time-s", fmt.Sprint(drainTime.Seconds()), "--parent-shutdown-time-s", fmt.Sprint(1 + drainTime.Seconds()),
	}})
}

// byXdspub publishes by saves in a source tree, which a watch publishes.
func (c *churn) byXdspub(t *testing.T) {
	s := newFixture(t, map[string]string{"edge.yaml": c.tree(0)}, "--eds", "file", "--trim-delay", (drainTime + 2*time.Second).String())
	s.args = append(s.args, confirmed(s.admin)...)
	s.startWatch(t)
	c.start(t, s.bootstrap(t))
	c.admin = s.admin
	c.publish = func(n int) { s.edit(t, "edge.yaml", func(string) string { return c.tree(n) }) }
	c.confirmed = true
}

// byPlainRenames publishes like a script: it renames the files in one directory, one after another, each before the
// files that name it. It waits for Envoy only after the last file.
func (c *churn) byPlainRenames(t *testing.T) {
	dir, stage := t.TempDir(), t.TempDir()
	path := func(kind, name string) string { return filepath.Join(dir, kind+"-"+name+".json") }
	source := func(kind, name string) string {
		return fmt.Sprintf("{path_config_source: {path: %q}}", path(kind, name))
	}
	cds, lds := filepath.Join(dir, "cds.json"), filepath.Join(dir, "lds.json")
	publish := func(n int) {
		put := func(path string, resources ...string) {
			t.Helper()
			r, err := decode("x.yaml", fmt.Appendf(nil, "{version_info: v%d, resources: [%s]}", n, strings.Join(resources, ", ")))
			if err != nil {
				t.Fatal(err)
			}
			data, err := protojson.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			staged := filepath.Join(stage, filepath.Base(path))
			if err := os.WriteFile(staged, data, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(staged, path); err != nil {
				t.Fatal(err)
			}
		}
		made := c.generation(n, source)
		for _, r := range made.endpoints {
			put(path("eds", r.name), r.text)
		}
		put(path("rds", made.routes[0].name), made.routes[0].text) // the new name
		put(cds, made.clusters...)
		put(lds, made.listeners...)
		put(path("rds", made.routes[1].name), made.routes[1].text) // the one that stays
	}
	publish(0)
	c.admin = envoytest.FreePort(t)
	c.start(t, fmt.Appendf(nil, `{
		"node": {"id": "n", "cluster": "c"},
		"admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": %d}}},
		"dynamic_resources": {
			"cds_config": {"path_config_source": {"path": %q}},
			"lds_config": {"path_config_source": {"path": %q}}
		}
	}`, c.admin, cds, lds))
	c.publish = func(n int) {
		publish(n)
		envoytest.Eventually(t, patience, "Envoy reads the files", func() (bool, string) {
			clusters, listeners := c.envoy.Stat(t, "cluster_manager.cds.update_attempt"), c.envoy.Stat(t, "listener_manager.lds.update_attempt")
			return clusters > int64(n) && listeners > int64(n), fmt.Sprintf("%d times CDS, %d times LDS, after %d changes", clusters, listeners, n)
		})
	}
}

// run publishes under traffic to a busy Envoy, and records the results.
func (c *churn) run(t *testing.T, publishes int, limit time.Duration) {
	t.Helper()
	dumps, idle := keepBusy(t, c.admin, 1)
	c.dumped = dumps
	func() {
		defer func() { c.dumps = idle() }()
		c.traffic.lead(0, c.doors(0))
		c.traffic.begin()
		defer c.traffic.stop()
		c.publishAll(t, publishes, limit)
	}()
	c.refused = len(regexp.MustCompile(`Filesystem config update (rejected|failure)`).FindAllString(c.envoy.Log(), -1))
}

// publishAll publishes a number of generations, one after another. After limit, it ends when it has published least
// generations.
func (c *churn) publishAll(t *testing.T, publishes int, limit time.Duration) {
	t.Helper()
	start := time.Now()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for c.publishes < publishes && (c.publishes < least || time.Since(start) < limit) {
		<-tick.C
		c.busy(t)
		c.publishes++
		c.publish(c.publishes)
		c.traffic.lead(c.publishes, c.doors(c.publishes)) // at once, since the generation is published
		if c.confirmed {
			c.inForce(t)
		}
		if c.publishes%round == 0 {
			c.rest(t)
		}
	}
	c.rest(t)
	c.length = time.Since(start)
}

// busy waits until there were ten requests on new connections and one dump for each publish.
func (c *churn) busy(t *testing.T) {
	t.Helper()
	envoytest.Eventually(t, patience, "Envoy is busy", func() (bool, string) {
		n, asked, dumps := c.publishes, c.traffic.asked(), c.dumped()
		return asked >= 10*n && dumps >= n, fmt.Sprintf("%d requests on new connections, %d dumps, %d publishes", asked, dumps, n)
	})
}

// inForce fails the test unless all listeners of the last generation answer with this generation.
func (c *churn) inForce(t *testing.T) {
	t.Helper()
	for _, d := range c.doors(c.publishes) {
		becomes(t, "the generation of "+d.name, fmt.Sprint(c.publishes), func() string {
			return ask(t, request{port: d.port}).header.Get("X-Generation")
		})
	}
}

// rest waits until nothing drains, and Envoy has only the clusters of the last generation.
func (c *churn) rest(t *testing.T) {
	t.Helper()
	want := len(c.generation(c.publishes, func(string, string) string { return here }).clusters)
	envoytest.Eventually(t, patience, "what went is gone", func() (bool, string) {
		clusters := c.envoy.Stat(t, "cluster_manager.active_clusters")
		chains, listeners := c.envoy.Stat(t, "listener_manager.total_filter_chains_draining"), c.envoy.Stat(t, "listener_manager.total_listeners_draining")
		return clusters == int64(want) && chains+listeners == 0, fmt.Sprintf("%d clusters, want %d; %d filter chains and %d listeners drain", clusters, want, chains, listeners)
	})
}

// table returns the figures of runs, side by side.
func table(runs []*churn) string {
	var b strings.Builder
	row := func(name string, figure func(c *churn) string) {
		b.WriteString("| " + name + " |")
		for _, c := range runs {
			b.WriteString(" " + figure(c) + " |")
		}
		b.WriteString("\n")
	}
	row("", func(c *churn) string { return c.by })
	b.WriteString("|---" + strings.Repeat("|---", len(runs)) + "|\n")
	row("publishes", func(c *churn) string { return fmt.Sprint(c.publishes) })
	row("updates that Envoy rejected", func(c *churn) string { return fmt.Sprint(c.refused) })
	part := func(name string, of func(c *churn) *tally) {
		row("requests on "+name, func(c *churn) string { return fmt.Sprint(of(c).asked()) })
		row("failed", func(c *churn) string { return fmt.Sprintf("**%d**", of(c).failed) })
		row("p50, p99", func(c *churn) string {
			ms := func(q float64) float64 { return float64(of(c).quantile(q)) / float64(time.Millisecond) }
			return fmt.Sprintf("%.1f ms, %.1f ms", ms(0.5), ms(0.99))
		})
	}
	part("new connections", func(c *churn) *tally { return &c.traffic.once })
	part("kept-alive connections", func(c *churn) *tally { return &c.traffic.kept })
	row("answered by what drained", func(c *churn) string { return fmt.Sprint(c.traffic.kept.drained) })
	row("crossed by a close", func(c *churn) string { return fmt.Sprint(c.traffic.kept.crossed) })
	row("wall time", func(c *churn) string { return c.length.Round(time.Second).String() })
	return b.String()
}
