package render

import (
	"slices"

	"xdspub/xds"
)

// Edited returns the files that differ from the last Render, and the Output's ID, where s
// differs from the Snapshot of that Render in the content of some resources only, and each
// of them has a file of its own, names no other one and costs Envoy the watches of before.
// ok is false where that is not so, or not known: then Render is needed.
func (r *Renderer) Edited(s *xds.Snapshot) (files []File, id string, ok bool) {
	if r.last.snapshot == nil {
		return nil, "", false
	}
	edits, ok := s.EditsSince(r.last.snapshot)
	if !ok {
		return nil, "", false
	}
	var edit xds.Change
	for _, e := range edits {
		was, res := e.Was, e.Is
		if res.Same(was) { // another one of the same file was edited
			continue
		}
		if !r.standsAlone(s, was) || !r.standsAlone(s, res) {
			return nil, "", false
		}
		old, err := r.encode(was)
		if err != nil {
			return nil, "", false
		}
		e, err := r.encode(res)
		if err != nil || !slices.Equal(old.watches, e.watches) {
			return nil, "", false
		}
		f, err := e.alone(r.format)
		if err != nil {
			return nil, "", false
		}
		bound := r.last.bound.Lookup(res.Type, res.Name)
		delete(r.written, bound)
		delete(r.sound, was)
		r.written[res] = e
		files = append(files, f)
		edit.Removed, edit.Added = append(edit.Removed, bound), append(edit.Added, res)
	}
	r.last.snapshot, r.last.bound = s, r.last.bound.Apply(edit)
	return files, r.last.bound.ID(), true
}

// standsAlone reports whether a resource has a file of its own, goes into it as it is, and
// into no other.
func (r *Renderer) standsAlone(s *xds.Snapshot, res *xds.Resource) bool {
	switch res.Type {
	case xds.Endpoints:
		if r.last.target.InlineEndpoints {
			return false
		}
	case xds.RouteConfiguration:
		if r.last.target.InlineRoutes || len(s.Of(xds.ScopedRoutes))+len(s.Of(xds.VirtualHost)) > 0 {
			return false
		}
	case xds.Runtime:
	default:
		return false
	}
	return len(res.Facts().Subscriptions) == 0 && len(r.changes(res)) == 0
}
