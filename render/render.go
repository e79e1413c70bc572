// Package render turns a Snapshot into the files that an Envoy subscribes to by
// path, as finished bytes. It knows neither the disk nor what was there before.
//
// Each subscription gets a directory of its own, because Envoy watches the
// directory of a file and files that share one have no order between them:
//
//	cds/cds.json  lds/lds.json  srds/srds.json
//	eds/<cluster>/eds.json  rds/<route configuration>/rds.json  sds/<secret>/sds.json
//	rtds/<layer>/rtds.json  ecds/<name>/ecds.json
//
// or the same with another suffix: Envoy knows a file's format by that.
//
// Config sources that say "from this snapshot" (ads, self) become paths; what a
// file can't carry is folded into what refers to it. Equal snapshots give equal
// bytes, from run to run and from build to build.
package render

import (
	"cmp"
	"fmt"
	"slices"

	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/protobuf/proto"

	"xdspub/diag"
	"xdspub/xds"
)

// Target says for whom a Snapshot is rendered.
type Target struct {
	// EnvoyPath is the output directory as Envoy sees it: an absolute path.
	EnvoyPath string
	// Format of the files; nil means JSON.
	Format *Format
	// InlineEndpoints puts endpoint assignments into their clusters, which then
	// need no subscription.
	InlineEndpoints bool
	// InlineRoutes puts route configurations into the listeners that ask for them,
	// which then need no subscription. Their files stay.
	InlineRoutes bool
	// Going are clusters of an earlier render, bound as they were, that stay in
	// the CDS file beside the new ones. A new cluster of the same name wins.
	Going []*xds.Resource
	// Hold are listeners that stay as an earlier render bound them, by name; nil
	// leaves one out.
	Hold map[string]*xds.Resource
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
}

// Output is a rendered Snapshot.
type Output struct {
	// Files are sorted by path.
	Files []File
	// ID is the hash of the whole Snapshot as rendered.
	ID string
	// Watches are the path subscriptions that Envoy will hold, by a name that is
	// the same for the same subscription of another Output. Each costs Envoy an
	// inotify instance.
	Watches []string
}

// Renderer renders Snapshots. It keeps the encoded form of resources, so that
// rendering again after a small change costs little. Not for concurrent use.
type Renderer struct {
	target Target
	known  map[*xds.Resource]*encoded
}

// Render renders s. Findings of severity Error mean that there is no Output.
func (r *Renderer) Render(s *xds.Snapshot, t Target) (*Output, diag.List) {
	t.Format = cmp.Or(t.Format, JSON)
	if t.EnvoyPath != r.target.EnvoyPath || t.Format != r.target.Format || t.InlineEndpoints != r.target.InlineEndpoints || t.InlineRoutes != r.target.InlineRoutes {
		r.known = nil
	}
	r.target = t
	known := make(map[*xds.Resource]*encoded, s.Len())
	b := newBinder(s, t)
	var list diag.List
	byType := make(map[*xds.Type][]*encoded)
	for _, res := range s.All() {
		e := r.known[res]
		if e == nil || !e.holdsFor(s) {
			var err error
			if t.Format.changes != nil {
				list = append(list, t.Format.changes(res)...)
			}
			if e, err = b.encode(res); err != nil {
				list = append(list, res.Diagnostic(codeUnencodable.Name, "", err.Error()))
				continue
			}
		}
		known[res] = e
		byType[res.Type] = append(byType[res.Type], e)
	}
	list = append(list, folderCollisions(s)...)
	if list.HasErrors() {
		return nil, list.Sort()
	}
	r.known = known
	out := Output{ID: id(byType)}
	for _, c := range t.Going {
		if s.Lookup(xds.Cluster, c.Name) != nil {
			continue
		}
		e, err := encode(t.Format, c, c.Message)
		if err != nil {
			list = append(list, c.Diagnostic(codeUnencodable.Name, "", err.Error()))
			return nil, list
		}
		byType[xds.Cluster] = append(byType[xds.Cluster], e)
	}
	if len(t.Hold) > 0 {
		var err error
		if byType[xds.Listener], err = hold(t, byType[xds.Listener]); err != nil {
			return nil, append(list, diag.Diagnostic{Code: codeUnencodable.Name, Message: err.Error()})
		}
	}
	slices.SortFunc(byType[xds.Cluster], func(a, b *encoded) int { return cmp.Compare(a.name, b.name) })
	for _, name := range t.EmptyLayers {
		if s.Lookup(xds.Runtime, name) == nil {
			layer := &runtimev3.Runtime{Name: name}
			e, err := encode(t.Format, &xds.Resource{Key: xds.Key{Type: xds.Runtime, Name: name}}, layer)
			if err != nil {
				return nil, diag.List{{Code: codeUnencodable.Name, Message: err.Error()}}
			}
			byType[xds.Runtime] = append(byType[xds.Runtime], e)
		}
	}
	var err error
	if out.Files, err = files(byType, b); err != nil {
		return nil, append(list, diag.Diagnostic{Code: codeUnencodable.Name, Message: err.Error()})
	}
	for _, list := range byType {
		for _, e := range list {
			out.Watches = append(out.Watches, e.watches...)
		}
	}
	for _, f := range out.Files {
		out.Watches = append(out.Watches, subscribedByBootstrap(f)...)
	}
	slices.Sort(out.Watches)
	out.Watches = slices.Compact(out.Watches)
	return &out, list
}

// hold puts listeners of before in the place of those that have to wait.
func hold(t Target, listeners []*encoded) ([]*encoded, error) {
	var list []*encoded
	for _, e := range listeners {
		r, held := t.Hold[e.name]
		switch {
		case !held:
			list = append(list, e)
		case r != nil:
			before, err := encode(t.Format, r, r.Message)
			if err != nil {
				return nil, err
			}
			list = append(list, before)
		}
	}
	return list, nil
}

// files puts encoded resources into files.
func files(byType map[*xds.Type][]*encoded, b *binder) ([]File, error) {
	var files []File
	var failed error
	add := func(t *xds.Type, name string, resources []*encoded) {
		f, err := file(b.target.Format, t, name, resources)
		failed = cmp.Or(failed, err)
		files = append(files, f)
	}
	for _, t := range xds.Types {
		switch t {
		case xds.Cluster, xds.Listener:
			add(t, "", byType[t])
		case xds.ScopedRoutes:
			if len(byType[t]) > 0 || b.scopesAsked {
				add(t, "", byType[t])
			}
		case xds.VirtualHost:
			// Envoy takes VHDS only over gRPC; they are folded into their routes.
		default:
			for _, e := range byType[t] {
				if t == xds.Endpoints && b.inlined[e.name] {
					continue
				}
				add(t, e.name, []*encoded{e})
			}
		}
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return files, failed
}

// subscribedByBootstrap is the watch of a file that the bootstrap names.
func subscribedByBootstrap(f File) []string {
	switch f.Type {
	case xds.Cluster, xds.Listener, xds.Runtime:
		return []string{f.Path}
	}
	return nil
}

// file writes one DiscoveryResponse around resources that are encoded already.
func file(format *Format, t *xds.Type, name string, resources []*encoded) (File, error) {
	f := File{Path: format.Path(t, name), Type: t, Name: name}
	canonical, written := make([][]byte, len(resources)), make([][]byte, len(resources))
	for i, e := range resources {
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

// id is the hash of all resources of a Snapshot as they are bound.
func id(byType map[*xds.Type][]*encoded) string {
	var parts [][]byte
	for _, t := range xds.Types {
		for _, e := range byType[t] {
			parts = append(parts, []byte(t.API), []byte(e.name), e.canonical)
		}
	}
	return xds.Version(parts)
}

// encoded is one resource as it stands in a file.
type encoded struct {
	name string
	// written is its form in a response of the format.
	written []byte
	// canonical is its binary form, for the version.
	canonical []byte
	secret    bool
	watches   []string
	// from are the resources that went into it, nil for one that was missing.
	from map[xds.Key]*xds.Resource
	// folded tells that what went into it can't be listed by name.
	folded bool
}

// holdsFor tells whether binding to s would give the same.
func (e *encoded) holdsFor(s *xds.Snapshot) bool {
	if e.folded {
		return false
	}
	for key, res := range e.from {
		if s.Lookup(key.Type, key.Name) != res {
			return false
		}
	}
	return true
}

// encode writes a bound message.
func encode(format *Format, res *xds.Resource, m proto.Message) (*encoded, error) {
	canonical, err := xds.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("can't be encoded: %w", err)
	}
	written, err := format.resource(m, canonical)
	if err != nil {
		return nil, fmt.Errorf("can't be written as %s: %w", format.Name, err)
	}
	return &encoded{name: res.Name, written: written, canonical: canonical, secret: xds.HoldsSecret(m), watches: watches(res, m)}, nil
}
