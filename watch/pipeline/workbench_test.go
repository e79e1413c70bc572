package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/event"
	"xdspub/render"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/render/published"
	"xdspub/source/load"
	"xdspub/tools/fixture"
	"xdspub/watch/pipeline"
	"xdspub/xds"
)

// script is the input of FuzzEdits. After its end, script returns zeros.
type script struct{ rest []byte }

// below returns the next number of the script, below n.
func (s *script) below(n int) int {
	if len(s.rest) == 0 {
		return 0
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return int(b) % n
}

// workbench is an editable tree: a fixture with the intended contents of its files.
type workbench struct {
	*fixture.Fixture
	variants []variants
	script   *script
	dir      *publish.Dir

	held    map[string][]variant // the intended contents of the files
	folder  string               // the folder's current name
	good    map[string][]byte    // the last valid tree
	settled *xds.Snapshot        // the snapshot that the output holds, and nothing else; nil if unknown
	stopped bool                 // the next publish ends early
	ender   fixture.Ender
	wanted  map[string]time.Time // when published clusters and files were last wanted
}

type variant struct{ resource, variant int }

var endpointsModes = []planner.EndpointsMode{planner.EndpointsAuto, planner.EndpointsFile, planner.EndpointsInline}

var deskFiles = []string{"a.yaml", "b.yml", "c.json", "d.pb", "e.pb_text", "f.txtpb", "FOLDER/a.yaml", "FOLDER/x/b.json", ".g.yaml"}

func newWorkbench(t *testing.T, stock []variants, s *script) *workbench {
	how := s.below(4 * 2 * 3 * 2)
	d := &workbench{variants: stock, script: s, held: map[string][]variant{}, wanted: map[string]time.Time{}, folder: "folder"}
	d.Fixture = fixture.New(t, func(o *pipeline.Options) {
		o.Format, o.Source.AllowEmpty, o.Endpoints = render.Formats[how%4], how/4%2 == 1, endpointsModes[how/8%3]
		if how >= 24 {
			o.InotifyBudget = 4 // some trees need more, others fit with everything inline
		}
	})
	if err := os.MkdirAll(filepath.Join(d.Src, d.folder, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if d.dir, err = publish.Open(d.Options.Out, publish.Options{Log: event.New(&d.ender)}); err != nil {
		t.Fatal(err)
	}
	d.P.Opened(d.dir)
	t.Cleanup(func() {
		if err := d.dir.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// edit executes one edit and reports whether a reconcile follows.
func (d *workbench) edit() bool {
	s := d.script
	file := func() string { return deskFiles[s.below(len(deskFiles))] }
	resource := func() int { return s.below(len(d.variants)) }
	switch min(s.below(kinds), put) {
	case put:
		r, n, name := resource(), s.below(5), file()
		d.leave(r)
		d.add(r, n, name, true)
	case alter:
		d.alter(resource(), s.below(5))
	case copied:
		d.add(resource(), s.below(5), file(), false)
	case drop:
		d.drop(resource())
	case take:
		d.leave(resource())
	case rename:
		from, to := file(), file()
		if _, ok := d.held[from]; ok && from != to {
			d.must(os.Rename(d.path(from), d.path(to)))
			d.held[to] = d.held[from]
			delete(d.held, from)
		}
	case damage:
		name, length := file(), s.below(256)
		if text, err := os.ReadFile(d.path(name)); err == nil {
			d.must(os.WriteFile(d.path(name), text[:len(text)*length/256], 0o644))
		}
	case heal:
		for name := range maps.Clone(d.held) {
			d.save(name)
		}
	case fold:
		old := filepath.Join(d.Src, d.folder)
		d.folder = map[string]string{"folder": "renamed", "renamed": ".hidden", ".hidden": "folder"}[d.folder]
		d.must(os.Rename(old, filepath.Join(d.Src, d.folder)))
	case tick:
		d.Now = d.Now.Add(time.Duration(s.below(16)) * time.Minute)
	case restart:
		mode := endpointsModes[s.below(3)]
		d.Restart(func(o *pipeline.Options) { o.Endpoints = mode })
		d.P.Opened(d.dir)
	case stop:
		d.stopped = true
		return false
	case batch:
		if len(s.rest) > 0 {
			d.edit()
		}
		return false
	}
	return true
}

func (d *workbench) must(err error) {
	d.T.Helper()
	if err != nil {
		d.T.Fatal(err)
	}
}

func (d *workbench) path(name string) string {
	return filepath.Join(d.Src, strings.Replace(name, "FOLDER", d.folder, 1))
}

// add adds a resource to a file, and the resources that it needs and no file has.
func (d *workbench) add(r, n int, name string, needs bool) {
	d.held[name] = append(d.held[name], variant{r, n % len(d.variants[r].text)})
	for _, need := range d.variants[r].needs {
		if needs && !d.holds(need) {
			d.add(need, n, name, true)
		}
	}
	d.save(name)
}

// alter changes the content of a resource in its place.
func (d *workbench) alter(r, n int) {
	for _, name := range slices.Sorted(maps.Keys(d.held)) {
		for i, v := range d.held[name] {
			if v.resource == r {
				d.held[name][i].variant = n % len(d.variants[r].text)
				d.save(name)
				return
			}
		}
	}
}

func (d *workbench) holds(r int) bool {
	for _, list := range d.held {
		if slices.ContainsFunc(list, func(v variant) bool { return v.resource == r }) {
			return true
		}
	}
	return false
}

// drop removes a resource from every file, and all resources that need it.
func (d *workbench) drop(r int) {
	if !d.holds(r) {
		return
	}
	d.leave(r)
	for i := range d.variants {
		if slices.Contains(d.variants[i].needs, r) {
			d.drop(i)
		}
	}
}

// leave removes a resource from every file.
func (d *workbench) leave(r int) {
	for name, list := range d.held {
		if left := slices.DeleteFunc(slices.Clone(list), func(v variant) bool { return v.resource == r }); len(left) < len(list) {
			d.held[name] = left
			d.save(name)
		}
	}
}

// save writes the intended content of a file, or removes a file that is meant to be empty.
func (d *workbench) save(name string) {
	list := d.held[name]
	if len(list) == 0 {
		delete(d.held, name)
		if err := os.Remove(d.path(name)); !errors.Is(err, fs.ErrNotExist) {
			d.must(err)
		}
		return
	}
	var text []string
	all := &discoveryv3.DiscoveryResponse{}
	for _, v := range list {
		text = append(text, d.variants[v.resource].text[v.variant])
		all.Resources = append(all.Resources, d.variants[v.resource].data[v.variant].GetResources()...)
	}
	data, err := []byte(strings.Join(text, "\n---\n")), error(nil)
	switch filepath.Ext(name) {
	case ".json":
		data, err = protojson.Marshal(all)
	case ".pb":
		data, err = proto.Marshal(all)
	case ".pb_text", ".txtpb":
		data, err = prototext.Marshal(all)
	}
	d.must(err)
	d.must(os.WriteFile(d.path(name), data, 0o644))
}

// pass runs a reconcile, as watch does, and compares the result.
func (d *workbench) pass(trimmed bool) {
	d.T.Helper()
	before := d.stamps()
	checked, err := d.Checked.Check(d.T.Context())
	d.must(err)
	cold := pipeline.New(d.Options)
	fresh, err := check.New(d.Options.Source).Check(d.T.Context())
	d.must(err)
	if diff := cmp.Diff(fresh.Diagnostics, checked.Diagnostics); diff != "" {
		d.T.Fatalf("findings (-cold +warm):\n%s", diff)
	}
	var plan *planner.Plan
	d.P.Trust(d.settled != nil) // as a watch does after an event
	if checked.Accepted() {
		var list diag.List
		plan, list, err = d.P.Plan(d.T.Context(), checked.Snapshot, d.Now)
		d.must(err)
		want, more, err := cold.Plan(d.T.Context(), fresh.Snapshot, d.Now)
		d.must(err)
		d.leaveOutSettled(want)
		d.leaveOutSettled(plan)
		if diff := cmp.Diff(more, list) + cmp.Diff(want, plan, cmpopts.IgnoreFields(planner.Plan{}, "Snapshot", "Bound"), cmpopts.IgnoreUnexported(publish.File{})); diff != "" {
			d.T.Fatalf("the plan (-cold +warm):\n%s", diff)
		}
	}
	stopped := d.stopped
	d.stopped = false
	if plan == nil {
		if diff := cmp.Diff(before, d.stamps()); diff != "" {
			d.T.Fatalf("the tree is wrong, and something moved (-before +after):\n%s", diff)
		}
		return
	}
	d.good, d.settled = d.read(d.Src), nil
	ctx, cancel := context.WithCancel(d.T.Context())
	defer cancel()
	if stopped {
		d.ender = fixture.Ender{Steps: 1, End: cancel}
	}
	switch _, err := d.P.Publish(ctx, d.dir, plan); {
	case stopped && (err == nil || errors.Is(err, context.Canceled)):
	case err != nil:
		d.T.Fatal(err)
	default:
		_, _, err := d.P.Trim(d.T.Context(), d.dir, d.Now)
		d.must(err)
		d.compare(fresh.Snapshot, trimmed)
		d.settled = checked.Snapshot
	}
}

// leaveOutSettled removes from a plan the files that are already published.
func (d *workbench) leaveOutSettled(plan *planner.Plan) {
	d.T.Helper()
	if plan != nil {
		var err error
		plan.Change, err = publish.Pending(d.Options.Out, plan.Change, publish.Options{})
		d.must(err)
	}
}

// cold returns a new pipeline, for a directory without files. The record tells it what is inline, because that
// does not follow from the tree.
func (d *workbench) cold() *pipeline.Pipeline {
	d.T.Helper()
	o := d.Options
	o.Out = filepath.Join(d.T.TempDir(), "cold")
	m := d.record()
	if o.Endpoints == planner.EndpointsAuto && m.EDSMode != "" {
		o.Endpoints = planner.EndpointsMode(m.EDSMode)
	}
	if m.InlineRoutesBudget > 0 {
		dir, err := publish.Open(o.Out, publish.Options{})
		d.must(err)
		_, err = dir.Publish(d.T.Context(), publish.Plan{Manifest: publish.Manifest{Format: m.Format, EnvoyPath: m.EnvoyPath, EDSMode: m.EDSMode, InlineRoutesBudget: m.InlineRoutesBudget}})
		d.must(err)
		d.must(dir.Close())
	}
	return pipeline.New(o)
}

func (d *workbench) record() publish.Manifest {
	d.T.Helper()
	m, err := publish.ReadManifest(d.Options.Out)
	d.must(err)
	return m
}

// compare compares the published files with those that a cold pipeline would publish. Retired clusters and
// files may exist besides, and must not be removed too early.
func (d *workbench) compare(s *xds.Snapshot, trimmed bool) {
	d.T.Helper()
	plan, _, err := d.cold().Plan(d.T.Context(), s, d.Now)
	d.must(err)
	m, out := d.record(), d.read(d.Options.Out)
	maps.DeleteFunc(out, func(name string, _ []byte) bool { return strings.HasPrefix(name, ".xdspub/") })
	if m.Snapshot != plan.ID || trimmed && len(m.Retired) > 0 {
		d.T.Errorf("the record says snapshot %s, and that %v go; want %s", m.Snapshot, m.Retired, plan.ID)
	}
	left := maps.Clone(out)
	for _, c := range d.Clusters() {
		out[cluster+c], left[cluster+c] = nil, nil
	}
	for _, r := range s.Of(xds.Cluster) {
		delete(left, cluster+r.Name)
		d.wanted[cluster+r.Name] = d.Now
	}
	more := slices.ContainsFunc(m.Retired, func(g publish.Retired) bool { return g.Cluster != "" })
	for _, step := range plan.Change.Steps {
		for _, f := range step.Write {
			isCDS := f.Path == d.Options.Format.Path(xds.Cluster, "")
			if got, ok := out[f.Path]; !ok || !(isCDS && more) && !bytes.Equal(got, f.Data) {
				d.T.Errorf("%s (-cold +out):\n%s", f.Path, cmp.Diff(string(f.Data), string(got)))
			}
			delete(left, f.Path)
			d.wanted[f.Path] = d.Now
		}
	}
	for name := range left {
		waits := slices.ContainsFunc(m.Retired, func(g publish.Retired) bool { return name == g.File || name == cluster+g.Cluster })
		if !waits && !d.standsIn(name) {
			d.T.Errorf("%s is out, is not wanted, and does not wait for its trim", name)
		}
	}
	for name, last := range d.wanted {
		if _, isOut := out[name]; !isOut && d.Now.Before(last.Add(d.Options.TrimDelay)) {
			d.T.Errorf("%s was wanted %v ago, and is gone", name, d.Now.Sub(last))
		}
	}
}

// cluster is the prefix for names of clusters in a map that also has names of files.
const cluster = "cluster "

// standsIn reports whether a published file is the file of an empty layer.
func (d *workbench) standsIn(name string) bool {
	d.T.Helper()
	if !published.IsLayer(name) {
		return false
	}
	result, err := load.New(load.Options{}).Load(d.T.Context(), filepath.Join(d.Options.Out, name))
	d.must(err)
	if len(result.Resources()) != 1 {
		return false
	}
	layer, ok := result.Resources()[0].Message().(*runtimev3.Runtime)
	return ok && layer.GetLayer() == nil
}

// end restores the last valid tree, and waits until all retired files are removed.
func (d *workbench) end() {
	d.T.Helper()
	d.must(os.RemoveAll(d.Src))
	d.must(os.Mkdir(d.Src, 0o755))
	for name, data := range d.good {
		name = filepath.Join(d.Src, name)
		d.must(os.MkdirAll(filepath.Dir(name), 0o755))
		d.must(os.WriteFile(name, data, 0o644))
	}
	d.stopped = false
	d.pass(false)
	d.Now = d.Now.Add(d.Options.TrimDelay)
	d.pass(d.good != nil)
	before := d.stamps()
	d.pass(d.good != nil)
	if diff := cmp.Diff(before, d.stamps()); diff != "" {
		d.T.Errorf("nothing changed, and something moved (-before +after):\n%s", diff)
	}
}

// read returns the files below a directory.
func (d *workbench) read(dir string) map[string][]byte {
	d.T.Helper()
	files := map[string][]byte{}
	d.must(fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files[name], err = os.ReadFile(filepath.Join(dir, name))
		return err
	}))
	return files
}

// stamps returns the published files and folders, each with the attributes that a rewrite changes.
func (d *workbench) stamps() []string {
	d.T.Helper()
	var list []string
	d.must(fs.WalkDir(os.DirFS(d.Options.Out), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		list = append(list, fmt.Sprint(name, info.Mode(), info.Size(), info.ModTime()))
		return err
	}))
	return list
}
