// Package render turns a Snapshot into the files that an Envoy subscribes to by path, as finished bytes.
// Package render reads and writes no files, and knows nothing of earlier published files.
//
// Each subscription gets its own folder. Envoy watches the folder of a file, and events of files in the same
// folder have no order:
//
//	cds/cds.json                 lds/lds.json                    srds/srds.json
//	eds/<cluster>/eds.json       rds/<route configuration>/rds.json   sds/<secret>/sds.json
//	rtds/<layer>/rtds.json       ecds/<name>/ecds.json
//
// The suffix differs by format, because Envoy recognizes a file's format by its suffix.
//
// Config sources that say "from this snapshot" (ads, self) become paths. A resource that no file can carry is
// inlined into the resource that refers to it. Equal snapshots give equal bytes, from run to run and from
// build to build.
package render

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"

	"xdspub/diag"
	"xdspub/xds"
	"xdspub/xds/bind"
)

// Target says for which Envoy, and in which form, a Snapshot is rendered.
type Target struct {
	// EnvoyPath is the output directory as Envoy sees it: an absolute path.
	EnvoyPath string
	// Format of the files; nil means JSON.
	Format *Format
	// PollInterval has Envoy read each file again and again, where no event tells it of a change.
	// 0 has it wait for events.
	PollInterval time.Duration
	// InlineEndpoints puts endpoint assignments into their clusters, which then
	// need no subscription.
	InlineEndpoints bool
	// InlineRoutes puts route configurations into the listeners that ask for them,
	// which then need no subscription. Their files stay.
	InlineRoutes bool
	// Retired are clusters of an earlier render, bound as they were: they stay in the CDS
	// file beside the new ones. A new cluster of the same name replaces one.
	Retired []*xds.Resource
	// Pinned are listeners to render as an earlier render bound them, by name; nil leaves
	// one out.
	Pinned map[string]*xds.Resource
	// EmptyLayers are runtime layers that a bootstrap still names and the Snapshot
	// has no longer: an empty layer stands in.
	EmptyLayers []string
}

// File is one finished file.
type File struct {
	// Path is slash-separated, below the output directory.
	Path string
	Data []byte
	Type *xds.Type
	// Name is the one resource in the file; empty for CDS, LDS and SRDS.
	Name string
	// Version is the version_info in the file.
	Version string
	// Secret tells that the file has secret content.
	Secret bool
	// Resources are the resources in the file, as they are rendered.
	Resources []*xds.Resource
}

// Output is a rendered Snapshot.
type Output struct {
	// Files are sorted by path.
	Files []File
	// ID is the hash of the rendered resources. A Snapshot has an ID for each Target.
	ID string
	// Watches names the path subscriptions that Envoy will hold. Equal subscriptions of two Outputs have equal
	// names. Each subscription costs Envoy an inotify instance.
	Watches []string
}

// Renderer renders Snapshots. A Renderer caches bound and encoded resources, so that a small change takes
// little time. Not for concurrent use.
type Renderer struct {
	binder bind.Binder
	format *Format
	// sound are the resources that the format can carry; written has the encodings of the bound resources.
	sound   map[*xds.Resource]bool
	written map[*xds.Resource]*encoded
	// several has, by type, the last files that hold several resources.
	several map[*xds.Type]*several
	// last describes the last Render or Edited with an Output. last.snapshot is nil if no Output exists, or if
	// a later Render or Edited failed.
	last struct {
		snapshot, bound *xds.Snapshot
		target          Target
		watches         *counted
		folders         map[string]int // how many resources have each (lowerFolder); nil before an edit asks
	}
}

// several is a file with its resources.
type several struct {
	of   []*encoded
	file File
}

// Render renders s for t. Render returns no Output if a finding has severity Error. If Render returns neither
// an Output nor a finding, ctx has ended.
func (r *Renderer) Render(ctx context.Context, s *xds.Snapshot, t Target) (*Output, diag.List) {
	t.Format = cmp.Or(t.Format, JSON)
	r.use(t.Format)
	r.last.snapshot = nil
	list := append(r.changed(s), folderCollisions(s)...)
	bound := r.binder.Bind(ctx, s, byPath{t.EnvoyPath, t.Format, t.PollInterval, t.InlineEndpoints, t.InlineRoutes})
	if bound == nil {
		return nil, nil
	}
	byType, failed := r.write(ctx, bound)
	if ctx.Err() != nil {
		return nil, nil
	}
	if list = append(list, failed...); list.HasErrors() {
		return nil, list.Sort()
	}
	out := Output{ID: bound.ID()}
	if failed := r.standIns(t, bound, byType); failed != nil {
		return nil, append(list, failed...)
	}
	var err error
	if out.Files, err = r.files(byType, scopesAsked(t, bound)); err != nil {
		return nil, append(list, diag.Diagnostic{Code: codeUnencodable.Name, Message: err.Error()})
	}
	watches := newCounted()
	for _, list := range byType {
		for _, e := range list {
			watches.add(e.watches, 1)
		}
	}
	for _, f := range out.Files {
		watches.add(subscribedByBootstrap(f), 1)
	}
	watches.settle()
	out.Watches = watches.sorted
	r.last.snapshot, r.last.bound, r.last.target, r.last.watches, r.last.folders = s, bound, t, watches, nil
	for _, res := range s.All() {
		res.Unload()
	}
	for _, f := range out.Files {
		for _, res := range f.Resources {
			res.Unload()
		}
	}
	return &out, list
}

// Bound returns the resources of the last Output, as Envoy gets them, without the Retired ones; nil without an
// Output.
func (r *Renderer) Bound() *xds.Snapshot { return r.last.bound }

// changed finds what Envoy would read otherwise than it was written in the format.
func (r *Renderer) changed(s *xds.Snapshot) (list diag.List) {
	if r.format.changes == nil {
		return nil
	}
	for _, res := range s.All() {
		list = append(list, r.changes(res)...)
	}
	maps.DeleteFunc(r.sound, func(res *xds.Resource, _ bool) bool { return !slices.Contains(s.Named(res.Key), res) })
	return list
}

// changes is changed for one resource. It looks at each once.
func (r *Renderer) changes(res *xds.Resource) diag.List {
	if r.format.changes == nil || r.sound[res] {
		return nil
	}
	list := r.format.changes(res)
	if len(list) == 0 {
		r.sound[res] = true
	}
	return list
}

// use drops the cached encodings if the format changes.
func (r *Renderer) use(f *Format) {
	if r.format != f {
		r.format, r.sound, r.written, r.several = f, make(map[*xds.Resource]bool), nil, make(map[*xds.Type]*several)
		r.last.snapshot = nil
	}
}

// write writes bound resources.
func (r *Renderer) write(ctx context.Context, bound *xds.Snapshot) (byType map[*xds.Type][]*encoded, list diag.List) {
	byType = make(map[*xds.Type][]*encoded)
	written := make(map[*xds.Resource]*encoded, bound.Len())
	for _, res := range bound.All() {
		if ctx.Err() != nil {
			return nil, nil
		}
		e, err := r.encode(res)
		if err != nil {
			list = append(list, res.Diagnostic(codeUnencodable.Name, "", err.Error()))
			continue
		}
		written[res] = e
		byType[res.Type] = append(byType[res.Type], e)
	}
	if len(list) == 0 {
		r.written = written
	}
	return byType, list
}

// standIns puts beside the bound resources what stays of an earlier render: clusters that
// go, listeners that wait for an address, and layers that the bootstrap still names.
func (r *Renderer) standIns(t Target, bound *xds.Snapshot, byType map[*xds.Type][]*encoded) diag.List {
	for _, c := range t.Retired {
		if bound.Lookup(xds.Cluster, c.Name) != nil {
			continue
		}
		e, err := r.encode(c)
		if err != nil {
			return diag.List{c.Diagnostic(codeUnencodable.Name, "", err.Error())}
		}
		byType[xds.Cluster] = append(byType[xds.Cluster], e)
	}
	slices.SortFunc(byType[xds.Cluster], func(a, b *encoded) int { return cmp.Compare(a.resource.Name, b.resource.Name) })
	var err error
	if byType[xds.Listener], err = r.pin(t, byType[xds.Listener]); err != nil {
		return diag.List{{Code: codeUnencodable.Name, Message: err.Error()}}
	}
	for _, name := range t.EmptyLayers {
		if bound.Lookup(xds.Runtime, name) == nil {
			e, err := r.encode(emptyLayer(name))
			if err != nil {
				return diag.List{{Code: codeUnencodable.Name, Message: err.Error()}}
			}
			byType[xds.Runtime] = append(byType[xds.Runtime], e)
		}
	}
	return nil
}

// emptyLayer returns what stands in for a runtime layer.
func emptyLayer(name string) *xds.Resource {
	return xds.ResourceOf(xds.Key{Type: xds.Runtime, Name: name}, &runtimev3.Runtime{Name: name})
}

// scopesAsked reports whether some listener subscribes to the SRDS file.
func scopesAsked(t Target, bound *xds.Snapshot) bool {
	file := path.Join(t.EnvoyPath, t.Format.Path(xds.ScopedRoutes, ""))
	return slices.ContainsFunc(bound.Of(xds.Listener), func(r *xds.Resource) bool {
		return slices.ContainsFunc(r.Facts().Subscriptions, func(s xds.Subscription) bool {
			return s.Target == xds.ScopedRoutes && xds.PathOf(s.Source) == file
		})
	})
}

// Clusters returns a CDS file with the clusters of r's last render, if any, and with clusters of an earlier
// render. If two clusters share a name, the file has the earlier cluster.
func (r *Renderer) Clusters(f *Format, before []*xds.Resource) (File, error) {
	r.use(f)
	var last []*encoded
	if was := r.several[xds.Cluster]; was != nil {
		last = was.of
	}
	all := make([]*encoded, 0, len(before)+len(last))
	for _, c := range slices.SortedStableFunc(slices.Values(before), func(a, b *xds.Resource) int { return cmp.Compare(a.Name, b.Name) }) {
		for len(last) > 0 && last[0].resource != c && last[0].resource.Name <= c.Name {
			if last[0].resource.Name < c.Name {
				all = append(all, last[0])
			}
			last = last[1:]
		}
		if len(last) > 0 && last[0].resource == c { // last has c's encoding
			all, last = append(all, last[0]), last[1:]
			continue
		}
		e, err := r.encode(c)
		if err != nil {
			return File{}, err
		}
		all = append(all, e)
	}
	all = append(all, last...)
	if was := r.several[xds.Cluster]; was != nil && slices.Equal(was.of, all) {
		return was.file, nil
	}
	return file(f, xds.Cluster, "", all)
}

// Trimmed returns the CDS file without some published clusters; stay are the clusters that it
// keeps. For the next Edited, the last Output is the one without the others.
func (r *Renderer) Trimmed(f *Format, stay []*xds.Resource) (File, error) {
	r.use(f)
	kept, gone, known := r.without(stay)
	if !known {
		r.last.snapshot = nil
		for _, c := range slices.SortedStableFunc(slices.Values(stay), func(a, b *xds.Resource) int { return cmp.Compare(a.Name, b.Name) }) {
			e, err := r.encode(c)
			if err != nil {
				return File{}, err
			}
			kept = append(kept, e)
		}
	}
	file, err := r.severalIn(xds.Cluster, kept)
	if err != nil || r.last.snapshot == nil {
		return file, err
	}
	for _, e := range gone {
		r.count(e, nil)
	}
	r.last.watches.settle()
	return file, nil
}

// without returns the clusters of the last CDS file that stay, and the clusters that go. known is false if
// stay has a cluster that this file lacks, if a cluster goes that is not retired, or without a last render.
func (r *Renderer) without(stay []*xds.Resource) (kept, gone []*encoded, known bool) {
	was := r.several[xds.Cluster]
	if was == nil || r.last.snapshot == nil {
		return nil, nil, false
	}
	for _, e := range was.of {
		switch {
		case len(stay) > 0 && stay[0] == e.resource:
			kept, stay = append(kept, e), stay[1:]
		case r.last.bound.Lookup(xds.Cluster, e.resource.Name) != nil:
			return nil, nil, false
		default:
			gone = append(gone, e)
		}
	}
	if len(stay) > 0 {
		return nil, nil, false
	}
	return kept, gone, true
}

// Wrote returns the resources in the file of a type, as r wrote it last.
func (r *Renderer) Wrote(t *xds.Type) []*xds.Resource {
	was := r.several[t]
	if was == nil {
		return nil
	}
	return was.file.Resources
}

// pin puts listeners of before instead of those that have to wait.
func (r *Renderer) pin(t Target, listeners []*encoded) ([]*encoded, error) {
	var list []*encoded
	for _, e := range listeners {
		before, held := t.Pinned[e.resource.Name]
		switch {
		case !held:
			list = append(list, e)
		case before != nil:
			e, err := r.encode(before)
			if err != nil {
				return nil, err
			}
			list = append(list, e)
		}
	}
	return list, nil
}

// files puts encoded resources into files, and reuses a file whose resources are unchanged.
func (r *Renderer) files(byType map[*xds.Type][]*encoded, scopesAsked bool) ([]File, error) {
	var files []File
	var failed error
	add := func(f File, err error) {
		failed = cmp.Or(failed, err)
		files = append(files, f)
	}
	for _, t := range xds.Types {
		switch {
		case t == xds.ScopedRoutes && len(byType[t]) == 0 && !scopesAsked:
		case inOneFile(t):
			add(r.severalIn(t, byType[t]))
		default:
			for _, e := range byType[t] {
				add(e.alone(r.format))
			}
		}
	}
	slices.SortFunc(files, inOrder)
	return files, failed
}

func inOrder(a, b File) int { return cmp.Compare(a.Path, b.Path) }

// severalIn returns the file of all resources of a type.
func (r *Renderer) severalIn(t *xds.Type, resources []*encoded) (File, error) {
	if was := r.several[t]; was != nil && slices.Equal(was.of, resources) {
		return was.file, nil
	}
	f, err := file(r.format, t, "", resources)
	if err == nil {
		r.several[t] = &several{slices.Clone(resources), f}
	}
	return f, err
}

// subscribedByBootstrap returns the watch of a file that the bootstrap names.
func subscribedByBootstrap(f File) []string {
	if len(f.Type.Entrypoints) > 0 {
		return nil
	}
	return []string{f.Path}
}

// file writes a DiscoveryResponse with encoded resources.
func file(format *Format, t *xds.Type, name string, resources []*encoded) (File, error) {
	f := File{Path: format.Path(t, name), Type: t, Name: name}
	canonical, written := make([][]byte, len(resources)), make([][]byte, len(resources))
	for i, e := range resources {
		f.Resources = append(f.Resources, e.resource)
		canonical[i], written[i] = e.canonical, e.written
		f.Secret = f.Secret || e.secret
	}
	f.Version = xds.Version(canonical)
	var err error
	if f.Data, err = format.response(f.Version, t.URL(), written); err != nil {
		err = fmt.Errorf("%s: %w", f.Path, err)
	}
	return f, err
}

// encoded is a resource as it stands in a file.
type encoded struct {
	resource *xds.Resource
	// written is its form in a response of the format.
	written []byte
	// canonical is its binary form, for the version.
	canonical []byte
	watches   []string
	secret    bool // it has secret content
	// file holds the resource alone; nil before the first use.
	file *File
}

// encode writes a bound resource, unless the last render has written it.
func (r *Renderer) encode(res *xds.Resource) (*encoded, error) {
	if e := r.written[res]; e != nil {
		return e, nil
	}
	canonical, err := res.Canonical()
	if err != nil {
		return nil, fmt.Errorf("can't be encoded: %w", err)
	}
	written, err := r.format.resource(res.Registry, res.Message(), canonical)
	if err != nil {
		return nil, fmt.Errorf("can't be written as %s: %w", r.format.Name, err)
	}
	return &encoded{resource: res, written: written, canonical: canonical, watches: watches(res), secret: res.Facts().HoldsSecret}, nil
}

// alone returns the file of this resource and no other.
func (e *encoded) alone(format *Format) (File, error) {
	if e.file != nil {
		return *e.file, nil
	}
	f, err := file(format, e.resource.Type, e.resource.Name, []*encoded{e})
	if err == nil {
		f.Data = bytes.Clone(f.Data) // a copy without spare capacity, because the cache keeps it
		e.heldIn(f.Data)
		e.file = &f
	}
	return f, err
}

// heldIn replaces e's copies by slices of data, the file that holds the resource alone. In binary form the
// file holds every copy.
func (e *encoded) heldIn(data []byte) {
	e.resource.HeldIn(data)
	if canonical, err := e.resource.Canonical(); err == nil {
		if bytes.Equal(e.written, e.canonical) {
			e.written = canonical
		}
		e.canonical = canonical
	}
}
