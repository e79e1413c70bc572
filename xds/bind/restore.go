package bind

import (
	"context"
	"maps"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"xdspub/xds"
)

// Restore returns files, a Snapshot of published files, with the resources of source, the source tree, in place of
// the bound resources that equal them. A cluster with inlined endpoints becomes a cluster that asks for them, with
// the assignment beside it. A resource that differs from the source tree stays as it is in files. Restore returns
// nil if ctx has ended.
func Restore(ctx context.Context, files, source *xds.Snapshot) *xds.Snapshot {
	was := bindAs(ctx, files, form{})
	few := bindAs(ctx, source, form{Inline{ScopeRoutes: true, Groups: true}})
	most := form{Inline{Endpoints: true, Routes: true, ScopeRoutes: true, Groups: true}}
	all := bindAs(ctx, source, most)
	if was == nil || few == nil || all == nil {
		return nil
	}
	asks, restored := newPass(source, most), make(map[xds.Key]*xds.Resource)
	for _, r := range files.All() {
		is := source.Lookup(r.Type, r.Name)
		if is == nil || !sameIn(few, was, r.Key) && !sameIn(all, was, r.Key) {
			restored[r.Key] = r
			continue
		}
		restored[r.Key] = is
		for _, inlined := range asks.inside(is) {
			if files.Lookup(inlined.Type, inlined.Name) == nil {
				restored[inlined.Key] = inlined
			}
		}
	}
	return xds.NewSnapshot(slices.Collect(maps.Values(restored)))
}

// inside returns the resources that p may inline into r.
func (p *pass) inside(r *xds.Resource) (list []*xds.Resource) {
	for _, d := range p.dependencies(nil, r) {
		if d.Type != xds.Secret {
			list = append(list, d.resources...)
		}
	}
	return list
}

// sameIn reports whether the first resources of a Key in two Snapshots exist and are equal.
func sameIn(a, b *xds.Snapshot, k xds.Key) bool {
	is, was := a.Lookup(k.Type, k.Name), b.Lookup(k.Type, k.Name)
	return is != nil && was != nil && is.Same(was)
}

func bindAs(ctx context.Context, s *xds.Snapshot, m Medium) *xds.Snapshot {
	var b Binder
	return b.Bind(ctx, s, m)
}

// form is a Medium for the comparison of resources: all subscriptions to the Snapshot get config sources that
// differ only in their other fields.
type form struct{ inline Inline }

// Source returns the config source of the subscription, changed to aggregated streams.
func (form) Source(sub xds.Subscription) *corev3.ConfigSource {
	source := &corev3.ConfigSource{}
	if sub.Source != nil {
		source = proto.CloneOf(sub.Source)
	}
	source.ResourceApiVersion = corev3.ApiVersion_V3
	source.ConfigSourceSpecifier = &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}
	return source
}

// Inline selects the resources that are compared in inlined form.
func (f form) Inline() Inline { return f.inline }
