package watch

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/source/owners"
	"xdspub/source/settingsfile"
	"xdspub/tools/memdir"
	"xdspub/tools/portion"
	"xdspub/watch/operator"
	"xdspub/watch/part"
	"xdspub/watch/pipeline"
	"xdspub/xds"
	"xdspub/xds/clients"
)

// item is a file with one resource of a random source tree with owners.
type item struct {
	kind    string // cluster, endpoints, secret, routes or when
	name    string
	content int
	to      string // the cluster of routes
	fault   string // empty for none
}

func (i item) text() string {
	var text string
	switch i.kind {
	case "cluster":
		text = fmt.Sprintf("\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: %s\ntype: EDS\nconnect_timeout: %ds\neds_cluster_config: {eds_config: {self: {}}}\n", i.name, i.content+1)
	case "endpoints":
		text = fmt.Sprintf("\"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\ncluster_name: %s\nendpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}}]}]\n", i.name, i.content+1)
	case "secret":
		text = fmt.Sprintf("\"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret\nname: %s\ngeneric_secret: {secret: {inline_string: \"%d\"}}\n", i.name, i.content)
	default:
		text = fmt.Sprintf("\"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration\nname: %s\nvirtual_hosts: [{name: \"%d\", domains: [\"*\"], routes: [{match: {prefix: /}, route: {cluster: %s}}]}]\n", i.name, i.content, i.to)
	}
	switch i.fault {
	case halfWritten:
		return text[:len(text)-4] + "{[\n"
	case unknownField:
		return text + "no_such_field: 1\n"
	case badFile:
		return text + "---\nname: x\n"
	case wrongWhen:
		return "when: {env: []}\n"
	}
	return text
}

func (i item) file() string {
	if i.kind == "when" {
		return settingsfile.FileName
	}
	return i.kind + "-" + i.name + ".yaml"
}

// Faults of a folder, besides those of a unit.
const (
	wrongWhen    = "a wrong when"              // nobody knows the clients of the folder
	danglingLink = "a link that leads nowhere" // the file can't be read
)

// folder has the files of an owner, by name.
type folder map[string]item

func (f folder) add(list ...item) {
	for _, i := range list {
		f[i.file()] = i
	}
}

// faulty reports whether a file has a fault, or a resource of the folder refers to what neither the folder nor shared
// files have.
func (f folder) faulty(shared folder) bool {
	for _, i := range f {
		_, assigned := f[item{kind: "endpoints", name: i.name}.file()]
		_, assigns := shared[item{kind: "endpoints", name: i.name}.file()]
		_, own := f[item{kind: "cluster", name: i.to}.file()]
		_, common := shared[item{kind: "cluster", name: i.to}.file()]
		if i.fault != "" || i.kind == "cluster" && !assigned && !assigns || i.kind == "routes" && !own && !common {
			return true
		}
	}
	return false
}

// teams is a source tree: the folders of owners, and the shared folder under the name "".
type teams map[string]folder

func (t teams) clone() teams {
	is := make(teams)
	for owner, f := range t {
		is[owner] = maps.Clone(f)
	}
	return is
}

// entangled reports whether a name of an owner is also a name of another one, in either tree.
func (t teams) entangled(owner string, was teams) bool {
	for _, a := range []teams{t, was} {
		for file := range a[owner] {
			for _, b := range []teams{t, was} {
				for other, f := range b {
					if _, has := f[file]; has && other != owner && file != settingsfile.FileName {
						return true
					}
				}
			}
		}
	}
	return false
}

// edit makes a random edit. An inlined assignment does not move, because a new process can't tell the assignment from
// its cluster.
func (t teams) edit(random *rand.Rand, inlined bool) {
	names := slices.Sorted(maps.Keys(t))
	owner := names[random.IntN(len(names))]
	f := t[owner]
	files := slices.Sorted(maps.Keys(f))
	is := f[files[random.IntN(len(files))]]
	switch random.IntN(13) {
	case 0, 1, 2:
		is.content = random.IntN(1000)
		f.add(is)
	case 3, 4:
		if owner != "" || random.IntN(3) == 0 {
			is.content = random.IntN(1000)
			faults := []string{halfWritten, unknownField, badFile, danglingLink}
			if owner == "" {
				faults = faults[:3] // a shared file that can't be read is an error of the look
			}
			if is.kind != "when" {
				is.fault = faults[random.IntN(len(faults))]
			}
			f.add(is)
		}
	case 5: // a new cluster with its endpoints, perhaps under a name that had another owner
		name := fmt.Sprintf("n%d", random.IntN(4))
		f.add(item{kind: "cluster", name: name}, item{kind: "endpoints", name: name}, item{kind: "secret", name: name})
	case 6: // routes to any cluster
		to := []string{"base", "a", "b", "c", "n0", "n1"}[random.IntN(6)]
		f.add(item{kind: "routes", name: "to-" + owner, to: to, content: random.IntN(1000)})
	case 7:
		if len(f) > 2 {
			delete(f, is.file())
		}
	case 8: // a resource moves
		if inlined && is.kind == "endpoints" || is.kind == "when" || is.fault == danglingLink {
			break
		}
		delete(f, is.file())
		to := names[random.IntN(len(names))]
		if t[to].add(is); len(f) == 0 {
			f.add(item{kind: "secret", name: "only-" + owner})
		}
	case 9, 10: // mends a folder
		t.mend(owner, random.IntN(1000))
	case 11:
		for _, owner := range names {
			t.mend(owner, random.IntN(1000))
		}
	case 12:
		if owner != "" {
			f.add(item{kind: "when", fault: wrongWhen})
		}
	}
}

// mend replaces the folder of an owner by one without a fault. Only resources of other owners may have an error now.
func (t teams) mend(owner string, content int) {
	name := owner
	if owner == "" {
		name = "base"
	}
	f := make(folder)
	f.add(item{kind: "cluster", name: name}, item{kind: "endpoints", name: name, content: content}, item{kind: "secret", name: name})
	if owner != "" {
		f.add(item{kind: "routes", name: "to-" + owner, to: owner}, item{kind: "routes", name: "base-" + owner, to: "base"})
	}
	t[owner] = f
}

// ownedTree is a source tree that is published by owners, and a model of it.
type ownedTree struct {
	processes
	src  teams
	live teams // the model of what is published
}

func newOwnedTree(t *testing.T, o Options) *ownedTree {
	dir := memdir.New(t)
	o.Source = check.Options{Path: filepath.Join(dir, "src"), Owners: []string{"teams/*"}}
	o.Out, o.EnvoyPath, o.InotifyBudget = filepath.Join(dir, "out"), "/envoy", 100
	m := &ownedTree{processes: processes{t: t, o: o}, src: make(teams)}
	for _, owner := range []string{"", "a", "b", "c"} {
		m.src.mend(owner, 0)
	}
	m.restart()
	t.Cleanup(func() { m.c.Close() })
	return m
}

// write writes the source tree.
func (m *ownedTree) write() {
	m.t.Helper()
	root := m.o.Source.Path
	must := func(err error) {
		m.t.Helper()
		if err != nil {
			m.t.Fatal(err)
		}
	}
	must(os.RemoveAll(root))
	must(os.MkdirAll(filepath.Join(root, "teams"), 0o755))
	for owner, f := range m.src {
		dir := filepath.Join(root, "teams", owner)
		if owner == "" {
			dir = filepath.Join(root, "shared")
		}
		must(os.MkdirAll(dir, 0o755))
		for file, i := range f {
			if i.fault == danglingLink {
				must(os.Symlink("nowhere", filepath.Join(dir, file)))
				continue
			}
			must(os.WriteFile(filepath.Join(dir, file), []byte(i.text()), 0o644))
		}
	}
}

// pass writes the source tree and publishes it, or a part of it.
func (m *ownedTree) pass() (Outcome, Part) {
	m.t.Helper()
	m.write()
	return m.publish()
}

// follow updates the model. Held folders are as they were last valid, but for changes of endpoints and secrets of
// Options.WhileRefused: a live one takes the content of its file if the file has no fault.
func (m *ownedTree) follow(o Outcome, p Part) {
	was := m.live
	switch {
	case o.Verdict == Published:
		m.live = m.src.clone()
		return
	case p.OwnersWait == "":
		m.live = m.src.clone()
		for _, h := range p.Held {
			owner := strings.TrimPrefix(h.Owner, "teams/")
			if delete(m.live, owner); was[owner] != nil {
				m.live[owner] = maps.Clone(was[owner])
			}
		}
	}
	if len(m.o.WhileRefused) == 0 || p.TypesWait {
		return
	}
	for owner, f := range m.live {
		if _, unknown := m.src[owner][settingsfile.FileName]; unknown {
			continue
		}
		for file, i := range f {
			if is, has := m.src[owner][file]; has && is.fault == "" && (i.kind == "endpoints" || i.kind == "secret") && !m.twice(file) {
				f[file] = is
			}
		}
	}
}

// twice reports whether two owners have a file, and so a resource.
func (m *ownedTree) twice(file string) bool {
	n := 0
	for _, f := range m.src {
		if _, has := f[file]; has {
			n++
		}
	}
	return n > 1
}

// modelled returns the files that a new process publishes for the model. The model has no error: no reference leads
// nowhere, or into the folder of another owner.
func (m *ownedTree) modelled() map[string]string {
	m.t.Helper()
	other := newOwnedTree(m.t, Options{Options: pipeline.Options{Endpoints: m.o.Endpoints}})
	other.src = m.live
	if o, _ := other.pass(); o.Verdict != Published {
		m.t.Fatalf("the published snapshot has errors: %v", o.Findings)
	}
	return files(m.t, other.o.Out)
}

// copied returns a new process with a copy of the output directory.
func (m *ownedTree) copied() *ownedTree {
	return &ownedTree{processes: m.processes.copied(), src: m.src, live: m.live}
}

// TestOwners plays random edits, faults and moves of names in the folders of three owners and in shared files. The
// published files equal those that a new process publishes for a faultless source tree, in which each held folder is as
// it was last valid. So each folder is wholly of one time, and no reference crosses into half a state. Folders with a
// fault are held, and no others, unless names move between folders. A restart changes nothing.
func TestOwners(t *testing.T) {
	counts := make(map[string]int)
	for seed := range uint64(48 / portion.Every(6, 12)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			o := Options{Options: pipeline.Options{Endpoints: planner.EndpointsFile}}
			switch seed % 4 {
			case 1:
				o.Endpoints = planner.EndpointsInline
			case 2:
				o.WhileRefused = part.Names()
			}
			m := newOwnedTree(t, o)
			for step := range 40 {
				cold := m
				switch {
				case step == 0:
				case random.IntN(4) == 0:
					m.restart()
				case step%3 == 2:
					cold = m.copied()
				}
				before := m.live
				o, p := m.pass()
				m.follow(o, p)
				m.compare(step, before, o, p, counts)
				if cold != m {
					_, again := cold.pass()
					diff := cmp.Diff(files(t, m.o.Out), files(t, cold.o.Out))
					if m.o.Endpoints != planner.EndpointsInline { // a new process can't tell an assignment from its cluster
						owners, held := ownersOn(t, m.o.Out)
						if again.Outcome.Verdict == Published && again.OwnersWait == "" { // the record is that of the last publish
							held = namesOf(p.Held)
						}
						newOwners, newHeld := ownersOn(t, cold.o.Out)
						diff += cmp.Diff(owners, newOwners) + cmp.Diff(held, newHeld)
					}
					if cold.c.Close(); diff != "" {
						t.Fatalf("step %d (-the running process +a new one):\n%s", step, diff)
					}
				}
				m.src.edit(random, m.o.Endpoints == planner.EndpointsInline)
			}
		})
	}
	if counts["held"] < 50 || counts["several"] < 20 || counts["waits"] < 10 || counts["published"] < 25 {
		t.Errorf("the source trees cover too little: %v", counts)
	}
}

// compare compares the published files with the model, and the held folders with the faults.
func (m *ownedTree) compare(step int, before teams, o Outcome, p Part, counts map[string]int) {
	m.t.Helper()
	if p.Waits != "" {
		m.t.Fatalf("step %d: %s", step, p.Waits)
	}
	if diff := cmp.Diff(m.modelled(), files(m.t, m.o.Out)); diff != "" {
		m.t.Fatalf("step %d, %s, held %v, %s (-model +out):\n%s", step, o.Message(), p.Held, p.OwnersWait, diff)
	}
	switch {
	case o.Verdict == Published:
		counts["whole"]++
		return
	case p.OwnersWait != "":
		counts["waits"]++
		if maps.Equal(m.src[""], before[""]) && !m.src.entangled("", before) {
			m.t.Errorf("step %d: the shared files have no fault, and all folders wait: %s", step, p.OwnersWait)
		}
		return
	}
	counts["held"]++
	if len(p.Held) > 1 {
		counts["several"]++
	}
	if p.Outcome.Verdict == Published {
		counts["published"]++
	}
	for owner, f := range m.src {
		held := slices.ContainsFunc(p.Held, func(h owners.Held) bool { return h.Owner == "teams/"+owner })
		faulty, entangled := f.faulty(m.src[""]), m.src.entangled(owner, before)
		if owner != "" && held != faulty && !entangled {
			m.t.Errorf("step %d: %s is held: %t, has a fault: %t", step, owner, held, faulty)
		}
	}
}

// namesOf returns the names of held owners.
func namesOf(held []owners.Held) (names []string) {
	for _, h := range held {
		names = append(names, h.Owner)
	}
	return names
}

// ownersOn returns the name of the record of owners in an output directory, and the held owners.
func ownersOn(t *testing.T, out string) (name string, held []string) {
	t.Helper()
	m, err := publish.ReadManifest(out)
	if err != nil {
		t.Fatal(err)
	}
	if m.Part != nil {
		held = namesOf(m.Part.Held)
	}
	names, err := os.ReadDir(filepath.Join(out, ".xdspub", ownersFolder))
	if err != nil || len(names) != 1 || names[0].Name() != m.Owners {
		t.Errorf("the records of owners are %v, want %s; %v", names, m.Owners, err)
	}
	return m.Owners, held
}

// holds fails unless the last pass has held the folders of some owners, and the output directory has the files of the
// model.
func (m *ownedTree) holds(o Outcome, p Part, owners ...string) {
	m.t.Helper()
	var held []string
	for _, h := range p.Held {
		held = append(held, strings.TrimPrefix(h.Owner, "teams/"))
	}
	if p.Waits+p.OwnersWait != "" || !slices.Equal(held, owners) {
		m.t.Fatalf("%s: held %v, want %v; %s %s", o.Verdict, held, owners, p.Waits, p.OwnersWait)
	}
	m.follow(o, p)
	if diff := cmp.Diff(m.modelled(), files(m.t, m.o.Out)); diff != "" {
		m.t.Fatalf("held %v (-model +out):\n%s", owners, diff)
	}
}

// interrupted is pass for a process that ends after its first step.
func (m *ownedTree) interrupted() {
	m.t.Helper()
	m.write()
	m.interrupt()
}

// TestOwnersInterrupted: a process that is killed while it publishes the folder of an owner leaves a part, which the
// next process completes. If that folder has an error now, nobody knows its last valid resources, and all waits.
func TestOwnersInterrupted(t *testing.T) {
	m := newOwnedTree(t, Options{Options: pipeline.Options{Endpoints: planner.EndpointsFile}})
	m.follow(m.pass())
	m.src["a"].add(item{kind: "secret", name: "a", content: 1, fault: unknownField})
	o, p := m.pass()
	m.holds(o, p, "a")
	change := func(content int) {
		m.src["b"].add(item{kind: "cluster", name: "b", content: content}, item{kind: "endpoints", name: "b", content: content},
			item{kind: "cluster", name: "more"}, item{kind: "endpoints", name: "more"}, item{kind: "routes", name: "to-b", to: "more", content: content})
	}
	change(1)
	m.interrupted()
	o, p = m.pass()
	m.holds(o, p, "a")

	change(2)
	m.src["b"].add(item{kind: "cluster", name: "again"}, item{kind: "endpoints", name: "again"})
	m.interrupted()
	m.src["b"].add(item{kind: "secret", name: "b", fault: halfWritten})
	before := files(t, m.o.Out)
	if _, p = m.pass(); !strings.HasPrefix(p.Waits, "a change was interrupted") || !strings.HasSuffix(p.Waits, "teams/b") {
		t.Errorf("after a change of b was interrupted: %+v", p)
	}
	if diff := cmp.Diff(before, files(t, m.o.Out)); diff != "" {
		t.Errorf("files have moved:\n%s", diff)
	}
	m.src["b"].add(item{kind: "secret", name: "b"})
	o, p = m.pass()
	m.holds(o, p, "a")
}

// TestOwnersUnknown: a process that has no record of the owners takes those of the source tree. If the source tree
// lacks a published name, all waits until a faultless source tree is published.
func TestOwnersUnknown(t *testing.T) {
	for name, lose := range map[string]func(m *ownedTree){
		"no record":     func(m *ownedTree) { os.RemoveAll(filepath.Join(m.o.Out, ".xdspub", ownersFolder)) },
		"damaged":       func(m *ownedTree) { replaceOnly(t, filepath.Join(m.o.Out, ".xdspub", ownersFolder, "*"), "{}") },
		"other pattern": func(m *ownedTree) { m.o.Source.Owners = []string{"teams/*", "more/*"} },
	} {
		m := newOwnedTree(t, Options{Options: pipeline.Options{Endpoints: planner.EndpointsFile}})
		m.follow(m.pass())
		lose(m)
		m.restart()
		whole := m.src.clone()
		m.src["a"].add(item{kind: "cluster", name: "a", content: 1, fault: unknownField})
		m.src["b"].add(item{kind: "cluster", name: "b", content: 1})
		lost := m.src.clone()
		lost["a"].add(item{kind: "cluster", name: "a", fault: halfWritten})
		known := m.src
		m.src = lost
		if _, p := m.pass(); !strings.HasPrefix(p.OwnersWait, `nobody knows which folder owns cluster "a"`) {
			t.Fatalf("%s: %+v", name, p)
		}
		m.src = known
		o, p := m.pass()
		m.holds(o, p, "a")
		m.restart()
		m.src = lost
		o, p = m.pass()
		m.holds(o, p, "a")
		m.src = whole
		o, p = m.pass()
		m.holds(o, p)
	}
}

// replaceOnly writes a text into the only file that a pattern matches.
func replaceOnly(t *testing.T, pattern, text string) {
	t.Helper()
	list, err := filepath.Glob(pattern)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if err := os.WriteFile(list[0], []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// strict is a Server whose clients reject clusters whose names begin with bad.
type strict struct {
	critic
	rejections int
}

func (s *strict) Publish(ctx context.Context, is *xds.Snapshot) error {
	refused := &clients.RefusedError{TakenBack: s.now != nil}
	for _, r := range is.Of(xds.Cluster) {
		if strings.HasPrefix(r.Name, "bad") {
			refused.Findings = append(refused.Findings, diag.Diagnostic{Resource: diag.Resource{Type: r.Type.URL(), Name: r.Name}, Message: "rejected"})
		}
	}
	if len(refused.Findings) > 0 {
		s.rejections++
		return refused
	}
	return s.critic.Publish(ctx, is)
}

// TestOwnersRejected: if clients reject the folder of an owner, all other folders go on. Clients do not get the
// rejected folder again until it changes.
func TestOwnersRejected(t *testing.T) {
	server := &strict{}
	m := newOwnedTree(t, Options{Server: server, Options: pipeline.Options{Endpoints: planner.EndpointsFile}})
	m.follow(m.pass())
	add := func(owner, name string) {
		m.src[owner].add(item{kind: "cluster", name: name}, item{kind: "endpoints", name: name})
	}
	rejected := func(want int) {
		t.Helper()
		if server.rejections != want {
			t.Fatalf("clients got rejected folders %d times, want %d", server.rejections, want)
		}
	}
	add("a", "bad-a")
	o, p := m.pass()
	m.holds(o, p, "a")
	rejected(1)
	add("b", "new")
	o, p = m.pass()
	m.holds(o, p, "a")
	rejected(1)

	add("b", "bad-b")
	if _, p = m.pass(); p.Waits == "" || p.Outcome.Verdict != RefusedByEnvoy {
		t.Fatalf("a rejected part: %+v", p)
	}
	rejected(2)
	m.src["c"].add(item{kind: "secret", name: "c", content: 7})
	o, p = m.pass()
	m.holds(o, p, "a", "b")
	rejected(2)

	delete(m.src["b"], item{kind: "cluster", name: "bad-b"}.file())
	delete(m.src["b"], item{kind: "endpoints", name: "bad-b"}.file())
	o, p = m.pass()
	m.holds(o, p, "a")
	rejected(2)
	m.src.mend("a", 5)
	o, p = m.pass()
	m.holds(o, p)
	rejected(2)
}

// TestOwnersGuarded: if a guard refuses the removals of an owner, only the folder of this owner waits.
func TestOwnersGuarded(t *testing.T) {
	m := newOwnedTree(t, Options{Guards: true, MaxRemoval: 50, Options: pipeline.Options{Endpoints: planner.EndpointsFile}})
	few := maps.Clone(m.src["b"])
	for n := range 12 {
		name := fmt.Sprintf("n%d", n)
		m.src["b"].add(item{kind: "cluster", name: name}, item{kind: "endpoints", name: name})
	}
	m.follow(m.pass())
	m.src["b"] = few
	m.src["c"].add(item{kind: "secret", name: "c", content: 7}, item{kind: "cluster", name: "new"}, item{kind: "endpoints", name: "new"})
	o, p := m.pass()
	m.holds(o, p, "b")
	m.o.Guards = false // --allow-removal
	m.restart()
	o, p = m.pass()
	m.holds(o, p)
}

// TestOwnersFrozen: during a freeze the folders of all owners wait, and the changes that WhileRefused admits go on.
func TestOwnersFrozen(t *testing.T) {
	m := newOwnedTree(t, Options{Freeze: weekend(t), WhileRefused: []string{"endpoints"}, Options: pipeline.Options{Endpoints: planner.EndpointsFile}})
	at := func(day time.Time) {
		m.c.clock = operator.Clock{Day: func() time.Time { return day }, Uptime: m.c.clock.Uptime}
	}
	at(friday)
	m.follow(m.pass())
	m.src["a"].add(item{kind: "secret", name: "a", fault: halfWritten})
	m.src["b"].add(item{kind: "cluster", name: "b", content: 1})
	o, p := m.pass()
	m.holds(o, p, "a")
	at(saturday)
	m.src["b"].add(item{kind: "cluster", name: "b", content: 2}, item{kind: "endpoints", name: "b", content: 2})
	if _, p = m.pass(); !strings.Contains(p.OwnersWait, "is frozen until") || p.Outcome.Verdict != Published {
		t.Errorf("during a freeze: %+v", p)
	}
	m.live["b"].add(item{kind: "endpoints", name: "b", content: 2})
	if diff := cmp.Diff(m.modelled(), files(t, m.o.Out)); diff != "" {
		t.Errorf("during a freeze (-model +out):\n%s", diff)
	}
	m.restart()
	at(monday)
	o, p = m.pass()
	m.holds(o, p, "a")
}
