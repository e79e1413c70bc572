package published

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"xdspub/xds"
)

// Snapshot returns what is published as the Snapshot of a source tree: a config source that leads
// to a published file says again that the resource comes from the Snapshot. What was inlined stays
// so, and resources that wait for their trim are among the others. The Snapshot is empty where
// nothing is published.
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

// unbound returns a resource as it was before it was bound to files. It is the same one where it
// has no such config source.
func (o ours) unbound(res *xds.Resource) *xds.Resource {
	if len(o.named([]*xds.Resource{res})) == 0 {
		return res
	}
	is := res.With(proto.Clone(res.Message()))
	is.Edit(o.unbind)
	return is
}

// unbind makes a config source that leads to a published file one that leads to the Snapshot, and
// reports whether it was one.
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
