package importer

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"xdspub/diag"
	"xdspub/render"
	"xdspub/source/load"
	"xdspub/xds"
)

// NotShown are the types whose resources Envoy does not show in a dump, or shows inside other resources.
var NotShown = []*xds.Type{xds.Secret, xds.Runtime, xds.VirtualHost, xds.LocalityEndpoints}

// Running returns the resources that a running Envoy has from its subscriptions, by the /config_dump?include_eds of
// the Envoy. Config sources lead to the Snapshot, as in a source tree. Static resources, and the types of NotShown, are
// no part of the Snapshot. redacted are the resources with a secret, which Envoy does not show. If the findings have an
// error, the Snapshot is nil.
func Running(in load.Input, o Options) (s *xds.Snapshot, redacted []xds.Key, findings diag.List) {
	r, findings := newReading(in, o)
	if findings.HasErrors() {
		return nil, nil, findings
	}
	r.read()
	others := r.decode()
	if !r.failed() {
		r.stay(others...)
		r.subscriptions()
	}
	if r.failed() {
		return nil, nil, r.findings().Sort()
	}
	var all []*xds.Resource
	for _, i := range r.items {
		if i.source.text == nil || slices.Contains(NotShown, i.Type) {
			continue
		}
		if len(r.dump.Redacted(i.source.path, i.source.text)) > 0 {
			redacted = append(redacted, i.Key)
		}
		all = append(all, secretsHere(i.Resource))
	}
	return xds.NewSnapshot(all), redacted, nil
}

// secretsHere returns a resource whose subscriptions to the files of secrets that xdspub publishes lead to the
// Snapshot.
func secretsHere(r *xds.Resource) *xds.Resource {
	if !r.AsksFor(xds.Secret) {
		return r
	}
	is := r.With(proto.Clone(r.Message()))
	is.Edit(func(n *xds.Node) bool {
		sub, ok := n.Subscription()
		if !ok || sub.Target != xds.Secret || !slices.ContainsFunc(render.Formats, func(f *render.Format) bool {
			return strings.HasSuffix(xds.PathOf(sub.Source), "/"+f.Path(xds.Secret, sub.Name))
		}) {
			return false
		}
		sub.Set(fromTree(sub.Source))
		return true
	})
	return is
}
