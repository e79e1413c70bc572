package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/google/go-cmp/cmp"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/event"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/tools/fixture"
	"xdspub/tools/memdir"
	"xdspub/tools/portion"
	"xdspub/watch/part"
	"xdspub/watch/pipeline"
	"xdspub/xds"
)

// unit is a file of a random source tree with one resource.
type unit struct {
	kind    string // cluster, endpoints or secret
	n       int
	content int
	fault   string // empty for none
}

// The faults of a unit. Each makes the source tree invalid.
const (
	halfWritten  = "half written"  // no parser can read the file
	unknownField = "unknown field" // the resource has an error of its own
	twice        = "twice"         // another file has the same resource
	badFile      = "bad file"      // another document of the file has an error
	noEndpoints  = "no endpoints"  // an assignment has none: a fault if the published one has endpoints
)

// text returns the file of the unit.
func (u unit) text() string {
	var text string
	switch u.kind {
	case "cluster":
		text = fmt.Sprintf("\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: c%d\ntype: EDS\nconnect_timeout: %ds\neds_cluster_config: {eds_config: {self: {}}}\n", u.n, u.content+1)
	case "endpoints":
		text = fmt.Sprintf("\"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\ncluster_name: c%d\nendpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}}]}]\n", u.n, u.content+1)
	default:
		text = fmt.Sprintf("\"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret\nname: s%d\ngeneric_secret: {secret: {inline_string: \"%d\"}}\n", u.n, u.content)
	}
	switch u.fault {
	case halfWritten:
		return text[:len(text)-4] + "{[\n"
	case unknownField:
		return text + "no_such_field: 1\n"
	case twice:
		return text + "---\n" + text
	case badFile:
		return text + "---\nname: x\n"
	case noEndpoints:
		return text[:strings.Index(text, "endpoints: ")]
	}
	return text
}

// name returns the file of a unit.
func (u unit) name() string { return fmt.Sprintf("%s%d.yaml", u.kind, u.n) }

// units are the files of a source tree, by name.
type units map[string]unit

// edit makes a random edit.
func (u units) edit(random *rand.Rand) {
	names := slices.Sorted(maps.Keys(u))
	name := names[random.IntN(len(names))]
	is := u[name]
	switch random.IntN(8) {
	case 0, 1, 2:
		is.content = random.IntN(1000)
		u[name] = is
	case 3, 4:
		is.content, is.fault = random.IntN(1000), []string{halfWritten, unknownField, twice, badFile, noEndpoints}[random.IntN(5)]
		if is.fault == noEndpoints && is.kind != "endpoints" {
			is.fault = halfWritten
		}
		u[name] = is
	case 5: // a new cluster or secret; the name may have existed before
		n := random.IntN(6)
		for _, kind := range []string{"cluster", "endpoints", "secret"} {
			if add := (unit{kind: kind, n: n, content: random.IntN(1000)}); u[add.name()].kind == "" {
				u[add.name()] = add
			}
		}
	case 6:
		if len(u) > 3 {
			delete(u, name)
		}
	case 7: // mends all
		for name, is := range u {
			is.fault = ""
			u[name] = is
			if is.kind == "cluster" && u[fmt.Sprintf("endpoints%d.yaml", is.n)].kind == "" {
				delete(u, name)
			}
		}
		for name, is := range u {
			if is.kind == "endpoints" && u[fmt.Sprintf("cluster%d.yaml", is.n)].kind == "" {
				delete(u, name)
			}
		}
	}
}

// write writes the files into a folder, and removes all other files.
func (u units) write(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if u[e.Name()].kind == "" {
			err = os.Remove(filepath.Join(dir, e.Name()))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, is := range u {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(is.text()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// processes are the processes that publish a source tree, one after another.
type processes struct {
	t    *testing.T
	o    Options
	tree *check.Tree
	c    *Controller // of the present process
}

// restart replaces the process.
func (p *processes) restart() {
	p.t.Helper()
	if p.c != nil {
		p.c.Close()
	}
	p.c, p.tree = New(p.o), Tree([]Options{p.o})
	if err := p.c.Open(); err != nil {
		p.t.Fatal(err)
	}
}

// publish publishes the source tree, or a part of it, and returns the verdict about the source tree.
func (p *processes) publish() (o Outcome, part Part) {
	p.t.Helper()
	ctx := p.t.Context()
	checked, err := p.tree.Check(ctx)
	if err == nil {
		err = p.c.Prepare(ctx)
	}
	var plan *planner.Plan
	if err == nil {
		plan, err = p.c.Plan(ctx, checked)
	}
	if err == nil {
		o, err = p.c.Publish(ctx, checked, plan)
	}
	if err == nil && o.Verdict != Published {
		part, err = p.c.PublishPart(ctx, checked, o, time.Unix(1, 0))
	}
	if err == nil {
		_, _, err = p.c.Trim(ctx)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return o, part
}

// interrupt is publish for a process that ends after its first step. interrupt then starts the next process.
func (p *processes) interrupt() {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	was := p.o
	p.o.Log = event.New(&fixture.Ender{Steps: 1, End: cancel})
	p.restart()
	checked, err := p.tree.Check(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	plan, err := p.c.Plan(ctx, checked)
	if err != nil {
		p.t.Fatal(err)
	}
	o, err := p.c.Publish(ctx, checked, plan)
	if o.Verdict == Invalid {
		_, err = p.c.PublishPart(ctx, checked, o, time.Unix(1, 0))
	}
	if !errors.Is(err, context.Canceled) {
		p.t.Fatalf("the publish ended with %v", err)
	}
	p.o = was
	p.restart()
}

// copied returns a new process with a copy of the output directory.
func (p *processes) copied() processes {
	p.t.Helper()
	cold := *p
	cold.o.Out, cold.c = filepath.Join(memdir.New(p.t), "out"), nil
	if err := os.CopyFS(cold.o.Out, os.DirFS(p.o.Out)); err != nil {
		p.t.Fatal(err)
	}
	cold.restart()
	return cold
}

// meanwhile is a source tree that is published with WhileRefused, and a model of it.
type meanwhile struct {
	processes
	src  units
	live units // the model of what is published
}

func newMeanwhile(t *testing.T, endpoints planner.EndpointsMode) *meanwhile {
	dir := memdir.New(t)
	m := &meanwhile{src: make(units), processes: processes{t: t, o: Options{WhileRefused: part.Names(), Guards: true, MaxRemoval: 50, Options: pipeline.Options{
		Source: check.Options{Path: filepath.Join(dir, "src")}, Out: filepath.Join(dir, "out"), EnvoyPath: "/envoy", Endpoints: endpoints, InotifyBudget: 100,
	}}}}
	for n := range 3 {
		for _, kind := range []string{"cluster", "endpoints", "secret"} {
			u := unit{kind: kind, n: n}
			m.src[u.name()] = u
		}
	}
	if err := os.Mkdir(m.o.Source.Path, 0o755); err != nil {
		t.Fatal(err)
	}
	m.restart()
	t.Cleanup(func() { m.c.Close() })
	return m
}

// pass writes the source tree and publishes it, or a part of it.
func (m *meanwhile) pass() (Outcome, Part) {
	m.t.Helper()
	m.src.write(m.t, m.o.Source.Path)
	return m.publish()
}

// follow updates the model. A live assignment or secret takes the content of its file, if the file has no error.
func (m *meanwhile) follow(o Outcome) {
	if o.Verdict == Published {
		m.live = maps.Clone(m.src)
		return
	}
	for name, is := range m.src {
		if m.live[name].kind != "" && is.kind != "cluster" && is.fault == "" {
			m.live[name] = is
		}
	}
}

// files returns the published files of an output directory, except records and layers.
func files(t *testing.T, out string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := fs.WalkDir(os.DirFS(out), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || strings.HasPrefix(name, ".xdspub/") {
			return err
		}
		data, err := os.ReadFile(filepath.Join(out, name))
		all[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// modelled returns the files that a new process publishes for the model.
func (m *meanwhile) modelled() map[string]string {
	m.t.Helper()
	other := *m
	dir := memdir.New(m.t)
	other.o.Source.Path, other.o.Out = filepath.Join(dir, "src"), filepath.Join(dir, "out")
	if err := os.Mkdir(other.o.Source.Path, 0o755); err != nil {
		m.t.Fatal(err)
	}
	other.src, other.c = m.live, nil
	other.restart()
	defer other.c.Close()
	if o, _ := other.pass(); o.Verdict != Published {
		m.t.Fatal(o.Findings)
	}
	return files(m.t, other.o.Out)
}

// copied returns a new process with a copy of the output directory.
func (m *meanwhile) copied() *meanwhile {
	return &meanwhile{processes: m.processes.copied(), src: m.src, live: m.live}
}

// TestWhileRefused plays random edits and faults. Each live assignment and secret is published with the last content
// that had no error, and everything else as the last valid source tree has it. No published file has an error. A new
// process publishes the same files with the same record as the running one.
func TestWhileRefused(t *testing.T) {
	parts := 0
	for seed := range uint64(24 / portion.Every(2, 4)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			m := newMeanwhile(t, []planner.EndpointsMode{planner.EndpointsFile, planner.EndpointsInline}[seed%2])
			if retires := seed%4 >= 2; retires {
				m.o.TrimDelay = time.Hour
				m.restart()
			}
			for step := range 40 {
				cold := m
				if step%3 == 2 {
					cold = m.copied()
				}
				o, p := m.pass()
				if p.Outcome.Verdict == Published {
					parts++
				}
				if p.Waits != "" {
					t.Fatalf("step %d: %s", step, p.Waits)
				}
				m.follow(o)
				m.compare(step, o)
				inlined := seed%2 == 1 && o.Verdict != Published // a new process can't tell an assignment from its cluster
				if cold != m {
					if _, p := cold.pass(); p.Waits != "" {
						t.Fatalf("step %d, a new process: %s", step, p.Waits)
					}
					diff := cmp.Diff(files(t, m.o.Out), files(t, cold.o.Out)) + cmp.Diff(record(t, m.o.Out), record(t, cold.o.Out))
					if cold.c.Close(); diff != "" && !inlined {
						t.Fatalf("step %d (-the running process +a new one):\n%s", step, diff)
					}
				}
				m.src.edit(random)
			}
		})
	}
	if parts < 20 {
		t.Errorf("only %d parts were published", parts)
	}
}

// compare compares the published files with the model.
func (m *meanwhile) compare(step int, o Outcome) {
	m.t.Helper()
	if list := errorsOf(m.t, m.o.Out); len(list) > 0 {
		m.t.Fatalf("step %d: %v", step, list)
	}
	if m.o.TrimDelay > 0 { // retired clusters and files stay
		return
	}
	if diff := cmp.Diff(m.modelled(), files(m.t, m.o.Out)); diff != "" {
		m.t.Fatalf("step %d, %s (-model +out):\n%s", step, o.Message(), diff)
	}
}

// interrupted is pass for a process that ends after its first step.
func (m *meanwhile) interrupted() {
	m.t.Helper()
	m.src.write(m.t, m.o.Source.Path)
	m.interrupt()
}

// TestPartInterrupted: a process that is killed while it publishes a part leaves a part, which the next process
// completes. Between two whole source trees, the next process can't tell what was valid, and waits.
func TestPartInterrupted(t *testing.T) {
	m := newMeanwhile(t, planner.EndpointsFile)
	m.pass()
	m.live = maps.Clone(m.src)
	set := func(u unit) { m.src[u.name()] = u }
	set(unit{"cluster", 1, 5, halfWritten})
	set(unit{"endpoints", 0, 7, ""})
	set(unit{"secret", 0, 7, ""})
	m.interrupted()
	o, p := m.pass()
	if p.Waits != "" || p.Outcome.Verdict != Published {
		t.Fatalf("after the part was interrupted: %+v", p)
	}
	m.follow(o)
	m.compare(0, o)

	set(unit{"cluster", 1, 5, ""})
	m.pass()
	set(unit{"cluster", 1, 6, ""})
	set(unit{"secret", 0, 8, ""})
	m.interrupted()
	set(unit{"cluster", 1, 6, unknownField})
	before := files(t, m.o.Out)
	if _, p = m.pass(); !strings.HasPrefix(p.Waits, "a change was interrupted") {
		t.Errorf("after a whole source tree was interrupted: %+v", p)
	}
	if diff := cmp.Diff(before, files(t, m.o.Out)); diff != "" {
		t.Errorf("files have moved:\n%s", diff)
	}
}

// errorsOf returns the errors in published files.
func errorsOf(t *testing.T, out string) diag.List {
	t.Helper()
	checked, err := check.Once(context.Background(), check.Options{Path: out})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(checked.Diagnostics, func(d diag.Diagnostic) bool { return d.Severity != diag.Error })
}

// record returns the record of an output directory.
func record(t *testing.T, out string) string {
	t.Helper()
	m, err := publish.ReadManifest(out)
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Retired {
		m.Retired[i].Since = time.Time{}
	}
	return fmt.Sprint(m.Snapshot, m.Part, m.Resources, m.Retired)
}

// secretFor returns the variants of a secret for the environments a and b.
func secretFor(a, b string) string {
	text := web
	for _, variant := range [][2]string{{"a", a}, {"b", b}} { // the id of a snapshot follows the order of the variants
		text += fmt.Sprintf("---\n{\"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource, resource_name: {name: s, dynamic_parameter_constraints: {constraint: {key: env, value: %s}}}, "+
			"resource: {\"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: s, generic_secret: {secret: {inline_string: %q}}}}\n", variant[0], variant[1])
	}
	return text
}

// TestPartServed: clients of a Server get the variants of a part. A snapshot that clients reject stays held while parts
// go on.
func TestPartServed(t *testing.T) {
	for _, writes := range []bool{false, true} {
		s := newSite(t, secretFor("1", "1"))
		server := &critic{rejects: "other"}
		s.o.Server, s.o.WhileRefused = server, part.Names()
		if !writes {
			s.o.Out = ""
		}
		c := New(s.o)
		if err := c.Open(); err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		goesOn := func(text string, want Verdict, secrets ...string) {
			t.Helper()
			s.write(text)
			checked, err := Tree([]Options{s.o}).Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			o := s.pass(c)
			if o.Verdict != want {
				t.Errorf("%s, want %s: %v", o.Verdict, want, o.Findings)
			}
			if p, err := c.PublishPart(t.Context(), checked, o, time.Unix(1, 0)); err != nil || p.Outcome.Verdict != Published {
				t.Errorf("%+v, %v", p, err)
			}
			var got []string
			for _, r := range server.now.Of(xds.Secret) {
				got = append(got, r.Message().(*tlsv3.Secret).GetGenericSecret().GetSecret().GetInlineString())
			}
			if slices.Sort(got); !slices.Equal(got, secrets) || server.now.Lookup(xds.Cluster, "other") != nil {
				t.Errorf("clients got %v of %v, want %v", got, server.now.All(), secrets)
			}
		}
		if o := s.pass(c); o.Verdict != Published {
			t.Fatal(o.Findings)
		}
		goesOn(secretFor("1", "2")+"---\n"+strings.ReplaceAll(wrong, "web", "third"), Invalid, "1", "2")
		goesOn(secretFor("3", "2")+"---\n"+other, RefusedByEnvoy, "2", "3")
		s.write(secretFor("3", "2") + "---\n" + other)
		if o := s.pass(c); o.Verdict != Held {
			t.Errorf("after a part: %s, want %s", o.Verdict, Held)
		}
		s.write(secretFor("4", "4"))
		if o := s.pass(c); o.Verdict != Published {
			t.Errorf("the mended source tree: %s %v", o.Verdict, o.Findings)
		}
	}
}
