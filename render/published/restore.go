package published

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/protobuf/proto"

	"xdspub/diag"
	"xdspub/render/publish"
	"xdspub/xds"
)

// Snapshot returns the published resources as the Snapshot of a source tree: a config source with the path of
// a published file becomes a reference to the Snapshot again. Inlined resources stay inlined. Resources that
// wait for their trim are part of the Snapshot. The Snapshot is empty if nothing is published.
func (r *Reader) Snapshot() (*xds.Snapshot, error) {
	st, err := r.State()
	if err != nil {
		return nil, err
	}
	return r.snapshot(st, func(*xds.Resource) bool { return false })
}

// snapshot returns the published resources as the Snapshot of a source tree, without those for which omit returns
// true.
func (r *Reader) snapshot(st *State, omit func(*xds.Resource) bool) (*xds.Snapshot, error) {
	var all []*xds.Resource
	for _, t := range xds.Types {
		list, err := st.Of(t)
		if err != nil {
			return nil, err
		}
		for _, res := range list {
			if !omit(res) {
				all = append(all, r.ours().unbound(res))
			}
		}
	}
	return xds.NewSnapshot(all), nil
}

// NotLiveError means that the files of an output directory don't have the resources of the last published Snapshot.
type NotLiveError struct{ Reason string }

func (e *NotLiveError) Error() string { return e.Reason }

// Live is Snapshot without the resources that wait for their trim, and without the files of others. A *NotLiveError
// means that nothing is published, that a change was interrupted, or that somebody has changed published files.
func (r *Reader) Live() (*xds.Snapshot, error) {
	st, err := r.State()
	if err != nil {
		return nil, err
	}
	if err := r.asPublished(st); err != nil {
		return nil, err
	}
	retired := st.Manifest.RetiredAt()
	return r.snapshot(st, func(res *xds.Resource) bool {
		_, cluster := retired[publish.Retired{Cluster: res.Name}]
		path := r.options.Format.Path(res.Type, res.Name)
		_, file := retired[publish.Retired{File: path}]
		_, known := st.Manifest.Files.Get(path)
		return cluster && res.Type == xds.Cluster || file || !known || isEmptyLayer(res)
	})
}

// isEmptyLayer reports whether a resource is a runtime layer without values. Its file is that of a removed layer.
func isEmptyLayer(res *xds.Resource) bool {
	layer, ok := res.Message().(*runtimev3.Runtime)
	return ok && len(layer.GetLayer().GetFields()) == 0
}

// asPublished returns a *NotLiveError unless the published files are those on record. After an interrupted publish of
// a part, files of the part may be newer than the record.
func (r *Reader) asPublished(st *State) error {
	drifted, err := st.Manifest.Drifted(r.options.Dir)
	if err != nil {
		return err
	}
	intent, err := publish.ReadIntent(r.options.Dir)
	switch {
	case err != nil:
		return err
	case st.Manifest.Snapshot == "":
		return &NotLiveError{"nothing is published"}
	case intent != nil && st.Manifest.Part == nil:
		return &NotLiveError{"a change was interrupted, so that the published files are those of two source trees"}
	case st.Manifest.Files.Incomplete():
		return &NotLiveError{"the record of published files was removed or damaged"}
	}
	changed := drifted
	if intent != nil {
		changed = without(st.Manifest.Files.Names(), st.Files)
	}
	for _, file := range st.Files {
		out, err := r.readBack(file)
		if err != nil {
			return err
		}
		if out.damage != "" {
			changed = append(changed, file)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	return &NotLiveError{"somebody has changed published files: " + diag.Few(slices.Compact(changed), mostChanged)}
}

// without returns the files of list that sorted lacks.
func without(list, sorted []string) (rest []string) {
	for _, file := range list {
		if _, found := slices.BinarySearch(sorted, file); !found {
			rest = append(rest, file)
		}
	}
	return rest
}

// mostChanged is the number of changed files that a NotLiveError names.
const mostChanged = 5

// unbound returns a resource with references to the Snapshot in place of paths. A resource without such paths
// is returned as is.
func (o ours) unbound(res *xds.Resource) *xds.Resource {
	if len(o.named([]*xds.Resource{res})) == 0 {
		return res
	}
	is := res.With(proto.Clone(res.Message()))
	is.Edit(o.unbind)
	return is
}

// unbind turns a config source with the path of a published file into a reference to the Snapshot, and reports
// whether the config source had such a path.
func (o ours) unbind(n *xds.Node) bool {
	sub, ok := n.Subscription()
	if !ok {
		return false
	}
	if _, ok := o.file(sub); !ok {
		return false
	}
	source := proto.CloneOf(sub.Source)
	source.ConfigSourceSpecifier = &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}
	sub.Set(source)
	return true
}
