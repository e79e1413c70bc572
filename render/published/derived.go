package published

import (
	"path"
	"slices"
	"strings"

	"xdspub/internal/names"
	"xdspub/render"
	"xdspub/xds"
)

// derived caches values computed from the resources of a published file. An update computes values of changed
// resources only.
type derived struct {
	resources []*xds.Resource
	// watches are the path subscriptions that Envoy holds for the resources.
	watches names.Counts
	// named are the files that the resources subscribe to.
	named names.Counts
}

// derive returns the values for the published clusters, or the published listeners. The result holds until the
// next call.
func (r *Reader) derive(t *xds.Type, resources []*xds.Resource) *derived {
	d := r.derived[t]
	if d == nil {
		d = &derived{watches: make(names.Counts), named: make(names.Counts)}
		r.derived[t] = d
	}
	if sameSlice(d.resources, resources) {
		return d
	}
	ours := r.ours()
	differences(d.resources, resources, func(res *xds.Resource, n int) {
		one := []*xds.Resource{res}
		d.watches.Add(render.Watches(one), n)
		d.named.Add(ours.named(one), n)
	})
	d.resources = resources
	return d
}

// differences calls add for each resource that only one of two lists by name has: with n = 1 for an added
// resource, with -1 for a removed resource.
func differences(was, is []*xds.Resource, add func(res *xds.Resource, n int)) {
	for len(was) > 0 && len(is) > 0 {
		switch {
		case was[0] == is[0]:
			was, is = was[1:], is[1:]
		case was[0].Name < is[0].Name:
			add(was[0], -1)
			was = was[1:]
		default:
			add(is[0], 1)
			is = is[1:]
		}
	}
	for _, res := range was {
		add(res, -1)
	}
	for _, res := range is {
		add(res, 1)
	}
}

// Foresee computes the derived values of rendered files before they are published, so that the first edit
// after the publish is fast.
func (r *Reader) Foresee(files []render.File) {
	for _, f := range files {
		if slices.Contains(xds.Entrypoints, f.Type) {
			r.derive(f.Type, r.rendered[f.Path].only(f.Type))
		}
	}
}

// File returns the published file that a subscription of a bound resource is for. ok is false
// where it is for none of the output directory.
func (r *Reader) File(sub xds.Subscription) (file string, ok bool) { return r.ours().file(sub) }

// Named returns the published files that bound resources subscribe to.
func (r *Reader) Named(resources []*xds.Resource) []string { return r.ours().named(resources) }

// ours is the output directory as Envoy sees it, with a slash at its end.
type ours string

func (r *Reader) ours() ours { return ours(strings.TrimSuffix(r.EnvoyPath(), "/") + "/") }

// file returns the published file that a subscription of a bound resource is for.
func (o ours) file(sub xds.Subscription) (file string, ok bool) {
	file, ok = strings.CutPrefix(xds.PathOf(sub.Source), string(o))
	return path.Clean(file), ok
}

// named returns the published files that bound resources subscribe to.
func (o ours) named(resources []*xds.Resource) (files []string) {
	for _, r := range resources {
		for _, sub := range r.Facts().Subscriptions {
			if file, ok := o.file(sub); ok {
				files = append(files, file)
			}
		}
	}
	return files
}

// sameSlice reports whether two slices are one.
func sameSlice(a, b []*xds.Resource) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
