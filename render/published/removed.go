package published

import (
	"net/url"
	"path"
	"slices"
	"strings"

	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"

	"xdspub/render/publish"
	"xdspub/validate/transition"
	"xdspub/xds"
)

// Read returns the published resource of a type and a name; nil for none. An unreadable file holds nothing.
func (s *State) Read(t *xds.Type, name string) (*xds.Resource, error) {
	if t == xds.Cluster {
		if s.clusters == nil {
			s.clusters = make(map[string]*xds.Resource, len(s.Clusters))
			for _, c := range s.Clusters {
				s.clusters[c.Name] = c
			}
		}
		return s.clusters[name], nil
	}
	if t == xds.Listener {
		return find(s.Listeners, name), nil
	}
	file := s.reader.options.Format.Path(t, name)
	if !s.Has(file) {
		return nil, nil
	}
	out, err := s.reader.readBack(file)
	if err != nil {
		return nil, err
	}
	return find(out.only(t), name), nil
}

// find returns the resource of a name; nil for none.
func find(list []*xds.Resource, name string) *xds.Resource {
	if i := slices.IndexFunc(list, func(r *xds.Resource) bool { return r.Name == name }); i >= 0 {
		return list[i]
	}
	return nil
}

// Removed returns what the change to a Snapshot removes from the published resources of a type. Removed reads no
// file that holds a single resource, except the files of runtime layers: the file of a removed layer stays, and is
// empty.
func (s *State) Removed(t *xds.Type, to *xds.Snapshot) (r transition.Removal, err error) {
	retired := s.Manifest.RetiredAt()
	count := func(name string, removed bool) {
		if r.Published++; removed {
			r.Names = append(r.Names, name)
		}
	}
	if t.Asked == xds.AsWhole || t == xds.Runtime {
		all, err := s.Of(t)
		for _, is := range all {
			_, goes := retired[publish.Retired{Cluster: is.Name}]
			if t == xds.Cluster && goes || t == xds.Runtime && len(is.Message().(*runtimev3.Runtime).GetLayer().GetFields()) == 0 {
				continue
			}
			count(is.Name, to.Lookup(t, is.Name) == nil)
		}
		return r, err
	}
	var stays map[string]bool // the files of the Snapshot
	for _, file := range s.Files {
		if !strings.HasPrefix(file, strings.ToLower(t.API)+"/") {
			continue
		}
		if _, goes := retired[publish.Retired{File: file}]; goes {
			continue
		}
		if stays == nil {
			stays = make(map[string]bool)
			for _, is := range to.Of(t) {
				stays[s.reader.options.Format.Path(t, is.Name)] = true
			}
		}
		count(nameOf(file), !stays[file])
	}
	return r, nil
}

// nameOf returns the name of the resource in a published file, by the name of the folder. The end of a long name is
// unknown.
func nameOf(file string) string {
	folder := path.Base(path.Dir(file))
	if name, err := url.PathUnescape(folder); err == nil {
		return name
	}
	return folder
}
