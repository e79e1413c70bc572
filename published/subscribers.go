package published

import (
	"cmp"
	"maps"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"xdspub/envoy"
	"xdspub/xds"
)

// Subscriber is a subscription of a published resource, or a bootstrap, to a published file.
type Subscriber struct {
	// File is the path below the output directory.
	File string
	t    *xds.Type
	name string // of the resource in the file; empty for CDS, LDS and SRDS
	// statPrefixes are those of Envoy's statistics, with envoy.Any for the part that depends
	// on which of several subscribers was the first.
	statPrefixes []string
	// entrypoints are the files of which a bootstrap must name one.
	entrypoints []string
}

// key is equal for subscribers that share one subscription in Envoy: only clusters have one
// each for their endpoints.
func (s *Subscriber) key() string {
	if s.t == xds.Endpoints {
		return s.File + " " + s.statPrefixes[0]
	}
	return s.File
}

// Expect returns the subscription for a question to Envoys, with the version that they are to
// run.
func (s *Subscriber) Expect(version string, unmoved bool) envoy.Subscription {
	return envoy.Subscription{File: s.File, API: s.t.API, Name: s.name, Version: version, StatPrefixes: s.statPrefixes, Entrypoints: s.entrypoints, Unmoved: unmoved}
}

// Subscribers are the subscriptions to published files.
type Subscribers struct {
	// All are in the order of their keys.
	All    []*Subscriber
	byKey  map[string]*Subscriber
	byFile map[string][]*Subscriber
	// What they are of.
	clusters, listeners []*xds.Resource
	layers              []string
}

// Subscribers returns the path subscriptions to published files that bootstraps have, by layers,
// and that these clusters and listeners have. It does not know those of the static resources of a
// bootstrap. For the same lists as before it returns the same value.
func (r *Reader) Subscribers(clusters, listeners []*xds.Resource, layers []string) *Subscribers {
	if s := r.subscribers; s != nil && sameSlice(s.clusters, clusters) && sameSlice(s.listeners, listeners) && slices.Equal(s.layers, layers) {
		return s
	}
	s := &Subscribers{
		byKey: r.findSubscribers(clusters, listeners, layers), byFile: make(map[string][]*Subscriber),
		clusters: clusters, listeners: listeners, layers: layers,
	}
	for _, key := range slices.Sorted(maps.Keys(s.byKey)) {
		sub := s.byKey[key]
		s.All = append(s.All, sub)
		s.byFile[sub.File] = append(s.byFile[sub.File], sub)
	}
	r.subscribers = s
	return s
}

// To returns the subscriptions to some files, in the order of their keys.
func (s *Subscribers) To(files map[string]bool) []*Subscriber {
	var list []*Subscriber
	for _, file := range slices.Sorted(maps.Keys(files)) {
		list = append(list, s.byFile[file]...)
	}
	return list
}

// Shares reports whether sub shares a subscription with one of Subscribers, so that Envoy has it
// already.
func (s *Subscribers) Shares(sub *Subscriber) bool { return s.byKey[sub.key()] != nil }

// findSubscribers returns the subscriptions by key.
func (r *Reader) findSubscribers(clusters, listeners []*xds.Resource, layers []string) map[string]*Subscriber {
	subs := make(map[string]*Subscriber)
	add := func(s *Subscriber) {
		if had := subs[s.key()]; had != nil {
			had.entrypoints = append(had.entrypoints, s.entrypoints...)
			had.statPrefixes = append(had.statPrefixes, s.statPrefixes...)
			s = had
		}
		for _, list := range []*[]string{&s.entrypoints, &s.statPrefixes} {
			slices.Sort(*list)
			*list = slices.Compact(*list)
		}
		subs[s.key()] = s
	}
	cds, lds := r.options.Format.Path(xds.Cluster, ""), r.options.Format.Path(xds.Listener, "")
	add(&Subscriber{File: cds, t: xds.Cluster, statPrefixes: []string{envoy.CDS()}, entrypoints: []string{cds}})
	add(&Subscriber{File: lds, t: xds.Listener, statPrefixes: []string{envoy.LDS()}, entrypoints: []string{lds}})
	for _, name := range layers {
		file := r.options.Format.Path(xds.Runtime, name)
		add(&Subscriber{File: file, t: xds.Runtime, name: name, statPrefixes: []string{envoy.RTDS()}, entrypoints: []string{file}})
	}
	ours := r.ours()
	for _, from := range []struct {
		via       string
		resources []*xds.Resource
	}{{cds, clusters}, {lds, listeners}} {
		for _, res := range from.resources {
			for _, sub := range res.Facts().Subscriptions {
				if file, ok := ours.file(sub); ok {
					add(&Subscriber{File: file, t: sub.Target, name: sub.Name, statPrefixes: statPrefixesOf(sub), entrypoints: []string{from.via}})
				}
			}
		}
	}
	return subs
}

// statPrefixesOf returns the stat prefixes that a subscription may have.
func statPrefixesOf(sub xds.Subscription) []string {
	switch sub.Target {
	case xds.Endpoints:
		c := sub.Node.Message.(*clusterv3.Cluster)
		return []string{envoy.EDS(cmp.Or(c.GetAltStatName(), c.GetName()))}
	case xds.RouteConfiguration:
		// Connection managers share a subscription, and Envoy keeps the stat_prefix of the
		// first, even when that one is gone.
		return []string{envoy.RDS(envoy.Any, sub.Name)}
	case xds.ScopedRoutes:
		scopes, _ := xds.Enclosing[*hcmv3.ScopedRoutes](sub.Node)
		return []string{envoy.SRDS(envoy.Any, scopes.GetName())}
	case xds.Secret:
		return []string{envoy.SDS(sub.Name)}
	case xds.ExtensionConfig:
		return []string{envoy.ECDS(envoy.Any, sub.Name)}
	}
	return nil
}
