package pipeline

import (
	"cmp"
	"maps"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"xdspub/envoy"
	"xdspub/xds"
)

// subscriber is a subscription of a published resource, or a bootstrap, to a published file.
type subscriber struct {
	file string // below the output directory
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
func (s *subscriber) key() string {
	if s.t == xds.Endpoints {
		return s.file + " " + s.statPrefixes[0]
	}
	return s.file
}

// subscribers are the subscriptions to published files.
type subscribers struct {
	byKey  map[string]*subscriber
	all    []*subscriber // in the order of their keys
	byFile map[string][]*subscriber
	// What they are of.
	clusters, listeners []*xds.Resource
	layers              []string
}

// subscribersOf returns the subscriptions to published files. It finds them again only where
// what they are of is not the same as before.
func (p *Pipeline) subscribersOf(clusters, listeners []*xds.Resource, layers []string) *subscribers {
	if s := p.subscribed; s != nil && sameSlice(s.clusters, clusters) && sameSlice(s.listeners, listeners) && slices.Equal(s.layers, layers) {
		return s
	}
	s := &subscribers{
		byKey: p.subscribers(clusters, listeners, layers), byFile: make(map[string][]*subscriber),
		clusters: clusters, listeners: listeners, layers: layers,
	}
	for _, key := range slices.Sorted(maps.Keys(s.byKey)) {
		sub := s.byKey[key]
		s.all = append(s.all, sub)
		s.byFile[sub.file] = append(s.byFile[sub.file], sub)
	}
	p.subscribed = s
	return s
}

// to returns the subscriptions to some files, in the order of their keys.
func (s *subscribers) to(files map[string]bool) []*subscriber {
	var list []*subscriber
	for _, file := range slices.Sorted(maps.Keys(files)) {
		list = append(list, s.byFile[file]...)
	}
	return list
}

// subscribers returns the subscriptions to published files, by key: those of bootstraps, and
// those of published clusters and listeners. It does not know those of static resources.
func (p *Pipeline) subscribers(clusters, listeners []*xds.Resource, layers []string) map[string]*subscriber {
	subs := make(map[string]*subscriber)
	add := func(s *subscriber) {
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
	cds, lds := p.options.Format.Path(xds.Cluster, ""), p.options.Format.Path(xds.Listener, "")
	add(&subscriber{file: cds, t: xds.Cluster, statPrefixes: []string{envoy.CDS()}, entrypoints: []string{cds}})
	add(&subscriber{file: lds, t: xds.Listener, statPrefixes: []string{envoy.LDS()}, entrypoints: []string{lds}})
	for _, name := range layers {
		file := p.options.Format.Path(xds.Runtime, name)
		add(&subscriber{file: file, t: xds.Runtime, name: name, statPrefixes: []string{envoy.RTDS()}, entrypoints: []string{file}})
	}
	ours := p.ours()
	for _, from := range []struct {
		via       string
		resources []*xds.Resource
	}{{cds, clusters}, {lds, listeners}} {
		for _, r := range from.resources {
			for _, sub := range r.Facts().Subscriptions {
				if file, ok := ours.file(sub); ok {
					add(&subscriber{file: file, t: sub.Target, name: sub.Name, statPrefixes: statPrefixesOf(sub), entrypoints: []string{from.via}})
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
