package published

import (
	"xdspub/render/publish"
	"xdspub/xds"
)

// Before returns the published resources as Envoy gets them, for a comparison with the resources that come next. If
// next lacks a resource, Before omits the resource if it waits for its trim, or if it is an empty runtime layer, which
// stands in for a removed layer.
func (r *Reader) Before(next *xds.Snapshot) (*xds.Snapshot, error) {
	st, err := r.State()
	if err != nil {
		return nil, err
	}
	retired := st.Manifest.RetiredAt()
	var all []*xds.Resource
	for _, t := range xds.Types {
		list, err := st.Of(t)
		if err != nil {
			return nil, err
		}
		for _, res := range list {
			waits := publish.Retired{File: r.options.Format.Path(t, res.Name)}
			if t == xds.Cluster {
				waits = publish.Retired{Cluster: res.Name}
			}
			if _, isRetired := retired[waits]; next.Lookup(t, res.Name) == nil && (isRetired || isEmptyLayer(res)) {
				continue
			}
			all = append(all, res)
		}
	}
	return xds.NewSnapshot(all), nil
}
