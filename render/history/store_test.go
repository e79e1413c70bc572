package history_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"google.golang.org/protobuf/proto"

	"xdspub/event"
	"xdspub/render/history"
	"xdspub/render/publish"
	"xdspub/source/load"
	"xdspub/tools/memdir"
	"xdspub/xds"
	"xdspub/xds/variants"
)

// noon is the time of the first entry of a test.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// process is a process that has an output directory open for writing.
type process struct {
	*history.Store
	t   *testing.T
	out string
	dir *publish.Dir
	log bytes.Buffer
}

// opened opens the history of an output directory for writing, until the test ends.
func opened(t *testing.T, out string, o history.Options) *process {
	t.Helper()
	p := &process{t: t, out: out}
	t.Cleanup(func() { p.dir.Close() })
	p.open(o)
	return p
}

func (p *process) open(o history.Options) {
	p.t.Helper()
	var err error
	if p.dir, err = publish.Open(p.out, publish.Options{}); err != nil {
		p.t.Fatal(err)
	}
	p.log.Reset()
	o.Log = event.New(slog.NewTextHandler(&p.log, nil))
	p.Store = history.Open(p.dir, o)
}

// restart ends the process, and starts the next one.
func (p *process) restart(o history.Options) {
	p.t.Helper()
	p.dir.Close()
	p.open(o)
}

// record records a Snapshot.
func (p *process) record(e history.Entry, of *xds.Snapshot) history.Item {
	p.t.Helper()
	if e.Snapshot == "" {
		e.Snapshot = of.ID()
	}
	i, err := p.Record(e, of)
	if err != nil {
		p.t.Fatal(err)
	}
	return i
}

// readHistory reads a history, until the test ends.
func readHistory(t *testing.T, out string) *history.History {
	t.Helper()
	h, err := history.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// clusters returns a Snapshot of clusters: name=stat name.
func clusters(t *testing.T, list ...string) *xds.Snapshot {
	t.Helper()
	var text strings.Builder
	for _, c := range list {
		name, stat, _ := strings.Cut(c, "=")
		fmt.Fprintf(&text, "- {\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: %s, alt_stat_name: %q, type: STATIC}\n", name, stat)
	}
	r := load.AsWritten(load.Input{Name: "c.yaml", Format: "yaml", Data: []byte(text.String() + "[]\n"[min(len(list), 1)*3:])})
	if r.Diagnostics.HasErrors() {
		t.Fatal(r.Diagnostics)
	}
	return r.Snapshot()
}

// many returns a Snapshot of n clusters. The changed clusters have another stat name.
func many(t *testing.T, n int, changed ...int) *xds.Snapshot {
	t.Helper()
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("cluster-%05d=%d", i, i)
	}
	for edit, i := range changed {
		list[i] += fmt.Sprintf("-edit-%d", edit)
	}
	return clusters(t, list...)
}

// sameSnapshot fails the test if two Snapshots differ, in resources, wrappers or constraints.
func sameSnapshot(t *testing.T, got, want *xds.Snapshot) {
	t.Helper()
	if got.ID() != want.ID() || variants.Of(got).ID() != variants.Of(want).ID() {
		t.Fatalf("snapshot %s, want %s", variants.Of(got).ID(), variants.Of(want).ID())
	}
	a, b := got.All(), want.All()
	for i := range b {
		if a[i].Key != b[i].Key || !a[i].Same(b[i]) || !a[i].For.Equal(b[i].For) {
			t.Errorf("%v for %s, want %v for %s", a[i].Key, a[i].For, b[i].Key, b[i].For)
		}
		if w := b[i].Meta; w != nil { // the constraints are compared above
			of := proto.CloneOf(a[i].Meta)
			of.ResourceName, of.Name = w.GetResourceName(), w.GetName()
			if !proto.Equal(of, w) {
				t.Errorf("%v has the wrapper %v, want %v", a[i].Key, of, w)
			}
		}
	}
}

// whole is a tree with variants by settings files and by wrappers, TTLs, aliases, metadata, and names that only
// wrappers have.
const whole = `
-- eu/xdspub.yaml --
when: {region: eu}
-- eu/web.yaml --
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: near, alt_stat_name: eu, type: STATIC}
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  resource_name: {name: both, dynamic_parameter_constraints: {constraint: {key: env, value: prod}}}
  ttl: 30s
  resource: {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: both, type: STATIC}
-- us/xdspub.yaml --
when: {region: us}
-- us/web.yaml --
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: near, alt_stat_name: us, type: STATIC}
-- web.yaml --
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: plain, type: STATIC}
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: timed
  aliases: [a, b]
  ttl: 30s
  metadata: {filter_metadata: {x: {y: 1.5}}}
  resource: {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: timed, type: STATIC}
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  resource_name: {name: two, dynamic_parameter_constraints: {constraint: {key: env, value: prod}}}
  resource: {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: two, alt_stat_name: prod, type: STATIC}
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  resource_name: {name: two, dynamic_parameter_constraints: {not_constraints: {constraint: {key: env, value: prod}}}}
  resource: {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: two, alt_stat_name: test, type: STATIC}
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: routes/host
  resource: {"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: host, domains: ["*"]}
- {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: token, generic_secret: {secret: {inline_string: hidden}}}
`

func TestLoad(t *testing.T) {
	want := treeOf(t, whole)
	out := filepath.Join(t.TempDir(), "out")
	item := opened(t, out, history.Options{}).record(history.Entry{Time: noon, Command: "render"}, want)
	h := readHistory(t, out)
	got, err := h.Load(item.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	sameSnapshot(t, got, want)
	if got.Named(xds.Key{Type: xds.Cluster, Name: "two"})[0].For.None() {
		t.Error("the test has no constraints")
	}
	if diff := cmp.Diff(map[string]int{"CDS": 7, "VHDS": 1, "SDS": 1}, item.Resources); diff != "" {
		t.Error(diff)
	}
}

// treeOf loads a source tree.
func treeOf(t *testing.T, archive string) *xds.Snapshot {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		name := filepath.Join(dir, f.Name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, f.Data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := load.New(load.Options{Streams: true}).Load(t.Context(), dir)
	if err != nil || r.Diagnostics.HasErrors() {
		t.Fatal(err, r.Diagnostics)
	}
	return r.Snapshot()
}

// TestLoadsEveryTree records the trees of all rules and of package agreement, loads them again, and reads their
// documents as source trees.
func TestLoadsEveryTree(t *testing.T) {
	names, err := filepath.Glob("../../validate/rules/*/testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := filepath.Glob("../../tools/agreement/testdata/cases/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if names = append(names, cases...); len(names) < 400 {
		t.Fatalf("only %d archives", len(names))
	}
	if testing.Short() {
		names = names[:40]
	}
	out := memdir.New(t)
	s := opened(t, out, history.Options{Keep: 10_000})
	want := make(map[string]*xds.Snapshot)
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for folder, tree := range trees(t, a) {
			if tree.Len() > 0 {
				i := s.record(history.Entry{Time: noon, Command: "render", Reason: filepath.Base(name) + "/" + folder}, tree)
				want[i.ID] = tree
			}
		}
	}
	h := readHistory(t, out)
	if len(h.Faults()) > 0 {
		t.Fatal(h.Faults())
	}
	for id, tree := range want {
		got, err := h.Load(id, nil)
		if err != nil {
			i, _ := h.Find(id)
			t.Fatal(i.Reason, err)
		}
		sameSnapshot(t, got, tree)
		d, err := h.Document(id)
		if err != nil {
			t.Fatal(err)
		}
		data, err := proto.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		r := load.AsWritten(load.Input{Name: "x.pb", Format: "pb", Data: data, Streams: true})
		if r.Diagnostics.HasErrors() {
			t.Fatal(r.Diagnostics)
		}
		sameSnapshot(t, r.Snapshot(), tree)
	}
	t.Logf("%d trees", len(want))
}

// trees returns the valid source trees in an archive, by folder.
func trees(t *testing.T, a *txtar.Archive) map[string]*xds.Snapshot {
	t.Helper()
	dir := t.TempDir()
	folders := make(map[string]*xds.Snapshot)
	for _, f := range a.Files {
		folder, _, inFolder := strings.Cut(f.Name, "/")
		name := filepath.Join(dir, f.Name)
		if !inFolder || !filepath.IsLocal(f.Name) {
			continue
		}
		folders[folder] = nil
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, f.Data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for folder := range folders {
		r, err := load.New(load.Options{Streams: true}).Load(t.Context(), filepath.Join(dir, folder))
		if err != nil || r.Diagnostics.HasErrors() {
			delete(folders, folder)
			continue
		}
		folders[folder] = r.Snapshot()
	}
	return folders
}

// files returns the sizes of the files of a history.
func files(t *testing.T, out string) map[string]int64 {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(out, ".xdspub/history"))
	if err != nil {
		t.Fatal(err)
	}
	sizes := make(map[string]int64)
	for _, f := range list {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o600 {
			t.Errorf("%s has mode %v", f.Name(), info.Mode())
		}
		sizes[f.Name()] = info.Size()
	}
	return sizes
}

// TestEditsAreSmall records 50 edits of one of 10,000 clusters, the last two from another process, and checks that
// each edit costs a few kilobytes.
func TestEditsAreSmall(t *testing.T) {
	out := memdir.New(t)
	s := opened(t, out, history.Options{})
	all := many(t, 10_000)
	s.record(history.Entry{Time: noon}, all)
	first := slices.Collect(maps.Values(files(t, out)))
	for n := range 49 {
		was := all.Of(xds.Cluster)[n]
		is := clusters(t, fmt.Sprintf("%s=edited-%d", was.Name, n)).All()
		all = all.Apply(xds.Change{Removed: []*xds.Resource{was}, Added: is})
		if n == 47 {
			s.restart(history.Options{})
			all = xds.NewSnapshot(all.All())
		}
		i := s.record(history.Entry{Time: noon}, all)
		want := &history.Changes{Changed: 1, NamesChanged: []string{"CDS/" + was.Name}}
		if diff := cmp.Diff(want, i.Changes); diff != "" {
			t.Fatal(diff)
		}
	}
	sizes := files(t, out)
	if len(first) != 1 || len(sizes) != 50 {
		t.Fatalf("%d files, then %d", len(first), len(sizes))
	}
	for name, size := range sizes {
		if size > 8<<10 && size != first[0] {
			t.Errorf("%s has %d bytes", name, size)
		}
	}
	t.Logf("the first entry has %d bytes", first[0])
}

// TestSame checks that a publish of what is out adds no entry, and notes the commit and the acknowledgement.
func TestSame(t *testing.T) {
	out := memdir.New(t)
	p := opened(t, out, history.Options{})
	a, b := clusters(t, "a"), clusters(t, "b")
	first := p.record(history.Entry{Time: noon, Revision: "11111111", Outcome: history.Unconfirmed}, a)
	p.restart(history.Options{})
	p.record(history.Entry{Time: noon, Revision: "22222222", Outcome: history.Unconfirmed}, a)
	p.record(history.Entry{Time: noon.Add(time.Hour), Revision: "22222222", Outcome: history.Acknowledged}, a)
	again := p.record(history.Entry{Time: noon.Add(2 * time.Hour), Revision: "22222222", Outcome: history.Unconfirmed}, a)
	want := history.Notes{Outcome: history.Acknowledged, Since: noon.Add(time.Hour), Revisions: []string{"22222222"}}
	if diff := cmp.Diff(want, again.Notes); diff != "" || again.ID != first.ID {
		t.Errorf("entry %s, want %s\n%s", again.ID, first.ID, diff)
	}
	// A rejected snapshot does not go out. A retry that is rejected again adds no entry.
	for range 2 {
		p.record(history.Entry{Time: noon.Add(3 * time.Hour), Outcome: history.Rejected}, b)
	}
	p.record(history.Entry{Time: noon.Add(4 * time.Hour), Outcome: history.Unconfirmed}, a)
	taken := p.record(history.Entry{Time: noon.Add(5 * time.Hour), Outcome: history.Acknowledged}, b)
	if diff := cmp.Diff(&history.Changes{Added: 1, Removed: 1, NamesAdded: []string{"CDS/b"}, NamesRemoved: []string{"CDS/a"}}, taken.Changes); diff != "" {
		t.Error(diff)
	}
	other := p.record(history.Entry{Time: noon.Add(6 * time.Hour), Snapshot: "other variants", Outcome: history.Acknowledged}, b)
	var outcomes []history.Outcome
	for _, i := range readHistory(t, out).Items() {
		outcomes = append(outcomes, i.Outcome())
	}
	if fmt.Sprint(outcomes) != "[acknowledged acknowledged rejected acknowledged]" || other.ID == taken.ID {
		t.Errorf("%v", outcomes)
	}
}

func TestFind(t *testing.T) {
	out := memdir.New(t)
	p := opened(t, out, history.Options{Keep: 400})
	empty := readHistory(t, out)
	if _, err := empty.At(noon); err == nil || !strings.Contains(err.Error(), "the history is empty") {
		t.Error(err)
	}
	ids := make(map[string]history.Item)
	for n := range 300 {
		commit := fmt.Sprintf("%04d%036d", n/100, n%3)
		if n%2 == 1 {
			commit += "+dirty"
		}
		i := p.record(history.Entry{Time: noon.Add(time.Duration(n) * time.Minute), Revision: commit}, clusters(t, fmt.Sprint("c=", n)))
		ids[i.ID] = i
	}
	h := readHistory(t, out)
	for id, want := range ids {
		if got, err := h.Find(strings.ToUpper(id)); err != nil || got.ID != want.ID || !got.Time.Equal(want.Time) {
			t.Errorf("Find %s: %s, %v", id, got.ID, err)
		}
		if got, err := h.At(want.Time.Add(59 * time.Second)); err != nil || got.ID != want.ID {
			t.Errorf("At %v: %s, %v", want.Time, got.ID, err)
		}
	}
	if _, err := h.Find("123"); err == nil || !strings.Contains(err.Error(), "too short") {
		t.Error(err)
	}
	if _, err := h.Find("not hex"); err == nil || !strings.Contains(err.Error(), "has no entry") {
		t.Error(err)
	}
	before, ok := errors.AsType[*history.BeforeError](func() error { _, err := h.At(noon.Add(-time.Second)); return err }())
	if !ok || !before.First.Equal(noon) {
		t.Error(before)
	}
	for commit, want := range map[string]string{
		"0000" + strings.Repeat("0", 36):       "2026-03-04T13:36:00Z", // the latest clean one
		"0002":                                 "commits",
		"0001" + strings.Repeat("0", 35) + "1": "2026-03-04T15:16:00Z",
		"000":                                  "too short", "ffff": "has no entry",
	} {
		i, err := h.Revision(commit)
		_, ambiguous := errors.AsType[*history.AmbiguousError](err)
		switch {
		case want == "commits" && ambiguous:
		case err != nil && strings.Contains(err.Error(), want):
		case err == nil && i.Time.Format(time.RFC3339) == want:
		default:
			t.Errorf("%s: %s, %v; want %s", commit, i.Time.Format(time.RFC3339), err, want)
		}
	}
}

// TestAmbiguous records entries until two of their ids have the same beginning.
func TestAmbiguous(t *testing.T) {
	out := memdir.New(t)
	p := opened(t, out, history.Options{Keep: 5_000})
	by := make(map[string]history.Item)
	var one, other history.Item
	for n := 0; other.ID == ""; n++ {
		i := p.record(history.Entry{Time: noon.Add(time.Duration(n) * time.Second), Snapshot: fmt.Sprint("v", n)}, clusters(t, "web=1"))
		prefix := i.ID[:history.MinPrefix]
		if was, ok := by[prefix]; ok {
			one, other = was, i
		}
		by[prefix] = i
	}
	h := readHistory(t, out)
	_, err := h.Find(one.ID[:history.MinPrefix])
	ambiguous, ok := errors.AsType[*history.AmbiguousError](err)
	if !ok || len(ambiguous.Items) != 2 || ambiguous.Items[0].ID != other.ID || ambiguous.Items[1].ID != one.ID {
		t.Fatalf("Find: %v, want an AmbiguousError with %s and %s", err, other.ID, one.ID)
	}
	for _, i := range []history.Item{one, other} {
		if line := fmt.Sprintf("\n    %s %s %s", i.ID, i.Time.Format(time.RFC3339), i.Snapshot); !strings.Contains(err.Error(), line) {
			t.Errorf("%v, want the line %q", err, line)
		}
		if got, err := h.Find(i.ID); err != nil || got.ID != i.ID {
			t.Errorf("Find %s: %s, %v", i.ID, got.ID, err)
		}
	}
}

// BenchmarkRecord records edits of one of 10,000 clusters.
func BenchmarkRecord(b *testing.B) {
	out := memdir.New(b)
	d, err := publish.Open(out, publish.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	s := history.Open(d, history.Options{})
	var list []*xds.Resource
	for i := range 10_000 {
		list = append(list, edited(i, 0))
	}
	all := xds.NewSnapshot(list)
	for n := 0; b.Loop(); n++ {
		i := n % len(list)
		next := edited(i, n+1)
		all = all.Apply(xds.Change{Removed: []*xds.Resource{list[i]}, Added: []*xds.Resource{next}})
		list[i] = next
		if _, err := s.Record(history.Entry{Time: noon, Snapshot: all.ID()}, all); err != nil {
			b.Fatal(err)
		}
	}
}

// edited returns a cluster after an edit.
func edited(i, edit int) *xds.Resource {
	name := fmt.Sprintf("cluster-%05d", i)
	return xds.ResourceOf(xds.Key{Type: xds.Cluster, Name: name}, &clusterv3.Cluster{Name: name, AltStatName: fmt.Sprint(edit)})
}
