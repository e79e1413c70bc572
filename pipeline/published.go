package pipeline

import (
	"path"
	"strings"

	"xdspub/xds"
)

// published reads the published resources for transition rules.
type published struct {
	p  *Pipeline
	st *state
}

// Of reads files of other types than clusters and listeners only when it is asked:
// there may be thousands. A file that can't be read holds nothing: no Envoy runs
// with it, and it is going to be replaced.
func (o published) Of(t *xds.Type) ([]*xds.Resource, error) {
	switch t {
	case xds.Cluster:
		return o.st.clusters, nil
	case xds.Listener:
		return o.st.listeners, nil
	}
	var all []*xds.Resource
	for _, file := range o.st.files {
		if !strings.HasPrefix(file, strings.ToLower(t.API)+"/") {
			continue
		}
		out, err := o.p.readBack(file)
		if err != nil {
			return nil, err
		}
		all = append(all, out.only(t)...)
	}
	return all, nil
}

// Path returns the file of a resource as Envoy sees it.
func (o published) Path(t *xds.Type, name string) string {
	return path.Join(o.p.envoyPath(), o.p.options.Format.Path(t, name))
}
