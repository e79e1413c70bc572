package published

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

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
	var all []*xds.Resource
	for _, t := range xds.Types {
		list, err := st.Of(t)
		if err != nil {
			return nil, err
		}
		for _, res := range list {
			all = append(all, r.ours().unbound(res))
		}
	}
	return xds.NewSnapshot(all), nil
}

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
