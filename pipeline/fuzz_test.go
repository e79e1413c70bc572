package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"xdspub/diag"
	"xdspub/load"
	"xdspub/publish"
	"xdspub/render"
	"xdspub/xds"
)

// FuzzEdits edits a source tree as its input says, with a pass after each edit by
// one Pipeline that keeps what it knows. What it finds and what is out must at each
// point be what a new Pipeline makes of the same tree, and nothing moves while the
// tree is wrong.
func FuzzEdits(f *testing.F) {
	stock := newStock(f)
	for _, edits := range [][]byte{
		{0, put, listenerIn, 0, 0, drop, listenerIn, tick, 5, tick, 11},
		{1, put, listenerIn, 0, 1, put, routesMain, 1, 4, damage, 4, 99, heal, rename, 4, 5},
		{2, put, clusterTLS, 0, 2, put, secretCA, 0, 3, take, secretCA, stop, put, secretCA, 1, 0},
		{3, put, listenerScoped, 0, 6, batch, put, routesMain, 2, 6, put, hostMain, 0, 7, fold, restart, 1, fold, drop, hostMain},
		{12, put, layerFlags, 0, 0, copied, layerFlags, 1, 1, rename, 1, 0, drop, layerFlags},
		{0, put, routesMain, 2, 0, put, hostMain, 0, 1, put, hostMain, 1, 1},
		{0, put, clusterTLS, 0, 0, put, secretToken, 0, 1, drop, secretToken, tick, 9, drop, secretCA, tick, 5, tick, 9},
		{16, put, listenerIn, 0, 0, put, endpointsBlue, 1, 1, take, endpointsGreen, put, clusterGreen, 1, 2, put, endpointsBlue, 0, 1},
		{24, put, listenerIn, 0, 0, put, routesMain, 1, 0, put, hostMain, 0, 1, put, routesMain, 2, 0, tick, 15, put, secretToken, 0, 0},
		{0, put, listenerIn, 0, 0, put, listenerScoped, 0, 1, batch, put, listenerIn, 4, 0, put, listenerScoped, 2, 1, batch, put, listenerIn, 3, 0, put, listenerScoped, 3, 1},
	} {
		f.Add(edits)
	}
	for seed := range uint64(10) {
		random, edits := rand.New(rand.NewPCG(seed, 0)), make([]byte, 150)
		for i := range edits {
			edits[i] = byte(random.Uint32())
		}
		f.Add(edits)
	}
	f.Fuzz(func(t *testing.T, edits []byte) {
		const most = 300 // bytes: what takes longer finds no more
		d := newDesk(t, stock, &script{edits[:min(len(edits), most)]})
		for len(d.script.rest) > 0 {
			if d.edit() {
				d.pass(false)
			}
		}
		d.end()
	})
}

// The edits of a tree. Behind each in the script stand what it is about, as said
// here, and where.
const (
	drop    = iota    // resource: and what needs it
	copied            // resource, variant, file: it may stand elsewhere, too
	take              // resource: it may be needed
	rename            // file, file
	damage            // file, length
	heal              // every file is again what it is meant to be
	fold              // a folder gets another name
	tick              // minutes
	restart           // mode of endpoints: the pipeline forgets what it knows
	stop              // the next publish ends after its first step
	batch             // the next edit is one with the one behind it
	put               // resource, variant, file: and what it needs
	edits   = put + 4 // it is what all higher numbers mean
)

// Resources of the stock.
const (
	clusterBlue = iota
	clusterGreen
	clusterTLS
	endpointsBlue
	endpointsGreen
	routesMain
	hostMain
	scopeMain
	listenerIn
	listenerScoped
	extensionMarker
	secretCA
	secretToken
	layerFlags
)

// stocked is a resource in its variants, as YAML and decoded.
type stocked struct {
	needs []int
	text  []string
	data  []*discoveryv3.DiscoveryResponse
}

func newStock(f *testing.F) []stocked {
	const (
		tls    = `{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: tls, transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {validation_context_sds_secret_config: {name: ca%s}}}}}`
		ca     = `{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: ca, validation_context: {trusted_ca: {inline_string: %q}}}`
		hosts  = `{"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: main, vhds: {config_source: {ads: {}}}}`
		host   = `{"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, name: main/h, resource: {"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: h, domains: [%s]}}`
		scope  = `{"@type": type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration, name: s, route_configuration_name: main, key: {fragments: [{string_key: %q}]}}`
		scoped = `rds: {route_config_name: main, config_source: {ads: {}}}`
		scopes = `scoped_routes: {name: s, scope_key_builder: {fragments: [{header_value_extractor: {name: x, index: 0}}]}, rds_config_source: {ads: {}}, scoped_rds: {scoped_rds_config_source: {ads: {}}}}`
		marker = `{"@type": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig, name: marker, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation%s}}`
		asked  = `http_filters: [{name: marker, config_discovery: {config_source: {ads: {}}, type_urls: [type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation]}}, `
	)
	at := func(listener string, port int) string {
		return regexp.MustCompile(`port_value: \d+`).ReplaceAllString(listener, fmt.Sprint("port_value: ", port))
	}
	in := fmt.Sprintf(listener, "a")
	other := at(strings.Replace(in, "name: in,", "name: other,", 1), 10001)
	policy := func(assignment string) string {
		return strings.TrimSuffix(assignment, "}") + ", policy: {overprovisioning_factor: 150}}"
	}
	stock := []stocked{
		clusterBlue:     {needs: []int{endpointsBlue}, text: []string{blue, strings.TrimSuffix(blue, "}") + ", connect_timeout: 3s}", strings.Replace(blue, "type: EDS", "type: STATIC", 1)}},
		clusterGreen:    {needs: []int{endpointsGreen}, text: []string{green, strings.TrimSuffix(green, "}") + ", eds_cluster_config: {service_name: blue}}"}},
		clusterTLS:      {needs: []int{secretCA}, text: []string{fmt.Sprintf(tls, ""), fmt.Sprintf(tls, ", sds_config: {ads: {}}")}},
		endpointsBlue:   {needs: []int{clusterBlue}, text: []string{blueEndpoints, policy(blueEndpoints)}},
		endpointsGreen:  {needs: []int{clusterGreen}, text: []string{greenEndpoints, policy(greenEndpoints)}},
		routesMain:      {needs: []int{clusterBlue, clusterGreen}, text: []string{fmt.Sprintf(routesTo, "blue"), fmt.Sprintf(routesTo, "green"), hosts}},
		hostMain:        {needs: []int{routesMain}, text: []string{fmt.Sprintf(host, "h"), fmt.Sprintf(host, "h, i")}},
		scopeMain:       {needs: []int{routesMain, listenerScoped}, text: []string{fmt.Sprintf(scope, "k"), fmt.Sprintf(scope, "l")}},
		listenerIn:      {needs: []int{routesMain, extensionMarker}, text: []string{in, fmt.Sprintf(listener, "b"), strings.Replace(in, "http_filters: [", asked, 1), at(in, 10001), at(in, 10002)}},
		listenerScoped:  {needs: []int{scopeMain}, text: []string{strings.Replace(other, scoped, scopes, 1), other, at(other, 10000), at(other, 10002)}},
		extensionMarker: {text: []string{fmt.Sprintf(marker, ""), fmt.Sprintf(marker, ", mutations: {response_mutations: [{remove: x}]}")}},
		secretCA:        {text: []string{fmt.Sprintf(ca, "x"), fmt.Sprintf(ca, "y")}},
		secretToken:     {text: []string{fmt.Sprintf(secret, "x"), fmt.Sprintf(secret, "y")}},
		layerFlags:      {text: []string{layer, strings.Replace(layer, "a: 1", "a: 1.5", 1)}}, // which YAML does not carry
	}
	for i := range stock {
		for _, text := range stock[i].text {
			response, result := load.Response(load.Input{Name: text, Format: "yaml", Data: []byte(text)})
			if response == nil {
				f.Fatal(result.Diagnostics)
			}
			stock[i].data = append(stock[i].data, response)
		}
	}
	return stock
}

// script is the input of FuzzEdits. Behind its end stand zeros.
type script struct{ rest []byte }

// below is the next number of the script, below n.
func (s *script) below(n int) int {
	if len(s.rest) == 0 {
		return 0
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return int(b) % n
}

// desk is where a tree is edited: a site, and what is known of its tree.
type desk struct {
	*site
	stock  []stocked
	script *script
	dir    *publish.Dir

	held    map[string][]variant // what the files are meant to hold
	folder  string               // that has one name or another
	good    map[string][]byte    // the tree that was accepted last
	stopped bool                 // the next publish is to end early
	wanted  map[string]time.Time // when what is out was wanted last
}

type variant struct{ resource, variant int }

var endpointsModes = []EndpointsMode{EndpointsAuto, EndpointsFile, EndpointsInline}

var deskFiles = []string{"a.yaml", "b.yml", "c.json", "d.pb", "e.pb_text", "f.txtpb", "FOLDER/a.yaml", "FOLDER/x/b.json", ".g.yaml"}

func newDesk(t *testing.T, stock []stocked, s *script) *desk {
	how := s.below(4 * 2 * 3 * 2)
	d := &desk{stock: stock, script: s, held: map[string][]variant{}, wanted: map[string]time.Time{}, folder: "folder"}
	d.site = newSite(t, func(o *Options) {
		o.Format, o.AllowEmpty, o.Endpoints = render.Formats[how%4], how/4%2 == 1, endpointsModes[how/8%3]
		if how >= 24 {
			o.InotifyBudget = 4 // for some trees too little, for others with all inline
		}
	})
	if err := os.MkdirAll(filepath.Join(d.src, d.folder, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if d.dir, err = publish.Open(d.p.options.Out, publish.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.dir.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// edit carries out one edit and tells whether it wants a pass behind it.
func (d *desk) edit() bool {
	s := d.script
	file := func() string { return deskFiles[s.below(len(deskFiles))] }
	resource := func() int { return s.below(len(d.stock)) }
	switch min(s.below(edits), put) {
	case put:
		r, n, name := resource(), s.below(5), file()
		d.leave(r)
		d.add(r, n, name, true)
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
		old := filepath.Join(d.src, d.folder)
		d.folder = map[string]string{"folder": "renamed", "renamed": ".hidden", ".hidden": "folder"}[d.folder]
		d.must(os.Rename(old, filepath.Join(d.src, d.folder)))
	case tick:
		d.now = d.now.Add(time.Duration(s.below(16)) * time.Minute)
	case restart:
		o := d.p.options
		o.Endpoints = endpointsModes[s.below(3)]
		d.p = New(o)
	case stop:
		d.stopped = true
		return false
	case batch:
		return len(s.rest) > 0 && d.edit() && false
	}
	return true
}

func (d *desk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) path(name string) string {
	return filepath.Join(d.src, strings.Replace(name, "FOLDER", d.folder, 1))
}

// add puts a resource into a file, with what it needs and no file has.
func (d *desk) add(r, n int, name string, needs bool) {
	d.held[name] = append(d.held[name], variant{r, n % len(d.stock[r].text)})
	for _, need := range d.stock[r].needs {
		if needs && !d.holds(need) {
			d.add(need, n, name, true)
		}
	}
	d.save(name)
}

func (d *desk) holds(r int) bool {
	for _, list := range d.held {
		if slices.ContainsFunc(list, func(v variant) bool { return v.resource == r }) {
			return true
		}
	}
	return false
}

// drop takes a resource out of every file, and all that needs it.
func (d *desk) drop(r int) {
	if !d.holds(r) {
		return
	}
	d.leave(r)
	for i := range d.stock {
		if slices.Contains(d.stock[i].needs, r) {
			d.drop(i)
		}
	}
}

// leave takes a resource out of every file.
func (d *desk) leave(r int) {
	for name, list := range d.held {
		if left := slices.DeleteFunc(slices.Clone(list), func(v variant) bool { return v.resource == r }); len(left) < len(list) {
			d.held[name] = left
			d.save(name)
		}
	}
}

// save writes a file as it is meant to be, and removes one that is to be empty.
func (d *desk) save(name string) {
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
		text = append(text, d.stock[v.resource].text[v.variant])
		all.Resources = append(all.Resources, d.stock[v.resource].data[v.variant].GetResources()...)
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

// pass makes one pass, as watch does, and compares.
func (d *desk) pass(trimmed bool) {
	d.t.Helper()
	before := d.stamps()
	checked, err := d.p.Check()
	d.must(err)
	cold := New(d.p.options)
	fresh, err := cold.Check()
	d.must(err)
	if diff := cmp.Diff(fresh.Diagnostics, checked.Diagnostics); diff != "" {
		d.t.Fatalf("findings (-cold +warm):\n%s", diff)
	}
	var plan *Plan
	if checked.Accepted() {
		var list diag.List
		plan, list, err = d.p.Plan(checked.Snapshot, d.now)
		d.must(err)
		want, more, err := cold.Plan(fresh.Snapshot, d.now)
		d.must(err)
		if diff := cmp.Diff(more, list) + cmp.Diff(want, plan); diff != "" {
			d.t.Fatalf("the plan (-cold +warm):\n%s", diff)
		}
	}
	stopped := d.stopped
	d.stopped = false
	if plan == nil {
		if diff := cmp.Diff(before, d.stamps()); diff != "" {
			d.t.Fatalf("the tree is wrong, and something moved (-before +after):\n%s", diff)
		}
		return
	}
	d.good = d.read(d.src)
	ctx, cancel := context.WithCancel(d.t.Context())
	defer cancel()
	if stopped {
		plan.Change.Gap = time.Hour
		cancel() // lets the first step out and ends the wait behind it
	}
	switch _, err := d.p.Publish(ctx, d.dir, plan); {
	case stopped && (err == nil || errors.Is(err, context.Canceled)):
	case err != nil:
		d.t.Fatal(err)
	default:
		d.compare(fresh.Snapshot, trimmed)
	}
}

// cold is a pipeline that knows nothing, for a directory without files. What went
// inline, once and for all, is no matter of the tree alone: the record says that.
func (d *desk) cold() *Pipeline {
	d.t.Helper()
	o := d.p.options
	o.Out = filepath.Join(d.t.TempDir(), "cold")
	m := d.record()
	if o.Endpoints == EndpointsAuto && m.EDSMode != "" {
		o.Endpoints = EndpointsMode(m.EDSMode)
	}
	if m.InlineRoutesBudget > 0 {
		dir, err := publish.Open(o.Out, publish.Options{})
		d.must(err)
		_, err = dir.Publish(d.t.Context(), publish.Plan{Manifest: publish.Manifest{Format: m.Format, EnvoyPath: m.EnvoyPath, EDSMode: m.EDSMode, InlineRoutesBudget: m.InlineRoutesBudget}})
		d.must(err)
		d.must(dir.Close())
	}
	return New(o)
}

func (d *desk) record() publish.Manifest {
	d.t.Helper()
	m, err := publish.ReadManifest(d.p.options.Out)
	d.must(err)
	return m
}

// compare holds what is out against what a cold pipeline would publish. Clusters
// and files that wait for their trim are out beside that, and not for too short.
func (d *desk) compare(s *xds.Snapshot, trimmed bool) {
	d.t.Helper()
	plan, _, err := d.cold().Plan(s, d.now)
	d.must(err)
	m, out := d.record(), d.read(d.p.options.Out)
	maps.DeleteFunc(out, func(name string, _ []byte) bool { return strings.HasPrefix(name, ".xdspub/") })
	if m.Snapshot != plan.ID || trimmed && len(m.Going) > 0 {
		d.t.Errorf("the record says snapshot %s, and that %v go; want %s", m.Snapshot, m.Going, plan.ID)
	}
	left := maps.Clone(out)
	for _, c := range d.clusters() {
		left[cluster+c] = nil
	}
	for _, r := range s.Of(xds.Cluster) {
		delete(left, cluster+r.Name)
		d.wanted[cluster+r.Name] = d.now
	}
	more := slices.ContainsFunc(m.Going, func(g publish.Going) bool { return g.Cluster != "" })
	for _, step := range plan.Change.Steps {
		for _, f := range step.Write {
			isCDS := f.Path == d.p.options.Format.Path(xds.Cluster, "")
			if got, ok := out[f.Path]; !ok || !(isCDS && more) && !bytes.Equal(got, f.Data) {
				d.t.Errorf("%s (-cold +out):\n%s", f.Path, cmp.Diff(string(f.Data), string(got)))
			}
			delete(left, f.Path)
			d.wanted[f.Path] = d.now
		}
	}
	for name := range left {
		waits := slices.ContainsFunc(m.Going, func(g publish.Going) bool { return name == g.File || name == cluster+g.Cluster })
		if !waits && !d.standsIn(name) {
			d.t.Errorf("%s is out, is not wanted, and does not wait for its trim", name)
		}
	}
	for name, last := range d.wanted {
		_, isOut := out[name]
		isOut = isOut || slices.Contains(d.clusters(), strings.TrimPrefix(name, cluster))
		if !isOut && d.now.Before(last.Add(d.p.options.TrimDelay)) {
			d.t.Errorf("%s was wanted %v ago, and is gone", name, d.now.Sub(last))
		}
	}
}

// cluster stands before the names of clusters where there are those of files, too.
const cluster = "cluster "

// standsIn tells whether a published file is that of an empty layer.
func (d *desk) standsIn(name string) bool {
	d.t.Helper()
	if !isLayer(name) {
		return false
	}
	result, err := load.New(load.Options{}).Load(filepath.Join(d.p.options.Out, name))
	d.must(err)
	if len(result.Resources) != 1 {
		return false
	}
	layer, ok := result.Resources[0].Message.(*runtimev3.Runtime)
	return ok && layer.GetLayer() == nil
}

// end takes a tree that is wrong back to the one that was right, and waits until
// all is gone that has to go.
func (d *desk) end() {
	d.t.Helper()
	d.must(os.RemoveAll(d.src))
	d.must(os.Mkdir(d.src, 0o755))
	for name, data := range d.good {
		name = filepath.Join(d.src, name)
		d.must(os.MkdirAll(filepath.Dir(name), 0o755))
		d.must(os.WriteFile(name, data, 0o644))
	}
	d.stopped = false
	d.pass(false)
	d.now = d.now.Add(d.p.options.TrimDelay)
	d.pass(d.good != nil)
	before := d.stamps()
	d.pass(d.good != nil)
	if diff := cmp.Diff(before, d.stamps()); diff != "" {
		d.t.Errorf("nothing changed, and something moved (-before +after):\n%s", diff)
	}
}

// read are the files below a directory.
func (d *desk) read(dir string) map[string][]byte {
	d.t.Helper()
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

// stamps are the published files and folders, each with what a rewrite changes.
func (d *desk) stamps() []string {
	d.t.Helper()
	var list []string
	d.must(fs.WalkDir(os.DirFS(d.p.options.Out), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		list = append(list, fmt.Sprint(name, info.Mode(), info.Size(), info.ModTime()))
		return err
	}))
	return list
}
