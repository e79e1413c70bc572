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

// Subscriber is a subscription to a published file. A published resource or the bootstrap of an Envoy has the
// subscription.
type Subscriber struct {
	// File is the path below the output directory.
	File string
	t    *xds.Type
	name string // of the resource in the file; empty for CDS, LDS and SRDS
	// share is equal for subscribers to a file that share a subscription in Envoy. Each cluster has its own
	// subscription to its endpoints; other subscribers share one.
	share string
	// from are the resources that subscribe.
	from []subscribing
	// statPrefixes are the prefixes of the subscription's statistics in Envoy, with envoy.Any for a part that
	// depends on which subscriber was the first.
	statPrefixes []string
	// entrypoints are files; a bootstrap must name at least one of them.
	entrypoints []string
}

// subscribing counts the subscribers with the same prefix and entrypoint.
type subscribing struct {
	statPrefix, entrypoint string
	n                      int
}

// with returns s with n more subscribers; n may be negative.
func (s Subscriber) with(by subscribing) *Subscriber {
	s.from = slices.Clone(s.from)
	same := func(f subscribing) bool { return f.statPrefix == by.statPrefix && f.entrypoint == by.entrypoint }
	i := slices.IndexFunc(s.from, same)
	if i < 0 {
		i, s.from = len(s.from), append(s.from, subscribing{by.statPrefix, by.entrypoint, 0})
	}
	if s.from[i].n += by.n; s.from[i].n <= 0 {
		s.from = slices.Delete(s.from, i, i+1)
	}
	s.statPrefixes, s.entrypoints = nil, nil
	for _, f := range s.from {
		s.entrypoints = append(s.entrypoints, f.entrypoint)
		if f.statPrefix != "" {
			s.statPrefixes = append(s.statPrefixes, f.statPrefix)
		}
	}
	for _, list := range []*[]string{&s.statPrefixes, &s.entrypoints} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return &s
}

// compareSubscribers is the order of Subscribers.All. Subscribers that share a subscription are equal.
func compareSubscribers(a, b *Subscriber) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.share, b.share))
}

// Expect returns the subscription for a question to Envoys, with the version that they are to
// run.
func (s *Subscriber) Expect(version string, unmoved bool) envoy.Subscription {
	return envoy.Subscription{
		File: s.File, API: s.t.API, Name: s.name, Version: version, StatPrefixes: s.statPrefixes,
		Entrypoints: s.entrypoints, Unmoved: unmoved,
	}
}

// Subscribers are the subscriptions to published files. A value never changes.
type Subscribers struct {
	// All are sorted by file.
	All []*Subscriber
	// The resources and layers that All was computed from.
	clusters, listeners []*xds.Resource
	layers              []string
}

// Subscribers returns the path subscriptions to published files of bootstraps, by layers, and of clusters and
// listeners. The static resources of a bootstrap are unknown. For the same lists as before, Subscribers
// returns the same value; for other lists it visits only the differences.
func (r *Reader) Subscribers(clusters, listeners []*xds.Resource, layers []string) *Subscribers {
	was := r.subscribers
	if was != nil && sameSlice(was.clusters, clusters) && sameSlice(was.listeners, listeners) && slices.Equal(was.layers, layers) {
		return was
	}
	cds, lds := r.options.Format.Path(xds.Cluster, ""), r.options.Format.Path(xds.Listener, "")
	var changes []subscribed
	ofBootstrap := func(t *xds.Type, name, file, statPrefix string, n int) {
		changes = append(changes, subscribed{&Subscriber{File: file, t: t, name: name}, subscribing{statPrefix, file, n}})
	}
	ofLayers := func(layers []string, n int) {
		for _, name := range layers {
			ofBootstrap(xds.Runtime, name, r.options.Format.Path(xds.Runtime, name), envoy.RTDS(), n)
		}
	}
	if was == nil {
		was = &Subscribers{}
		ofBootstrap(xds.Cluster, "", cds, envoy.CDS(), 1)
		ofBootstrap(xds.Listener, "", lds, envoy.LDS(), 1)
	}
	ofLayers(was.layers, -1)
	ofLayers(layers, 1)
	ours := r.ours()
	from := func(entrypoint string) func(*xds.Resource, int) {
		return func(res *xds.Resource, n int) { changes = append(changes, ours.subscribed(res, entrypoint, n)...) }
	}
	differences(was.clusters, clusters, from(cds))
	differences(was.listeners, listeners, from(lds))
	r.subscribers = &Subscribers{was.after(changes), clusters, listeners, slices.Clone(layers)}
	return r.subscribers
}

// subscribed is a change of how many subscribe to a file.
type subscribed struct {
	to *Subscriber
	by subscribing
}

// subscribed returns the subscriptions of a resource to published files, n times.
func (o ours) subscribed(res *xds.Resource, entrypoint string, n int) (list []subscribed) {
	for _, sub := range res.Facts().Subscriptions {
		file, ok := o.file(sub)
		if !ok {
			continue
		}
		s, prefix := &Subscriber{File: file, t: sub.Target, name: sub.Name}, statPrefixOf(sub)
		if sub.Target == xds.Endpoints {
			s.share = prefix
		}
		list = append(list, subscribed{s, subscribing{prefix, entrypoint, n}})
	}
	return list
}

// after returns All after changes.
func (s *Subscribers) after(changes []subscribed) []*Subscriber {
	slices.SortStableFunc(changes, func(a, b subscribed) int {
		return cmp.Or(compareSubscribers(a.to, b.to), -cmp.Compare(a.by.n, b.by.n))
	})
	all, rest := make([]*Subscriber, 0, len(s.All)+len(changes)), s.All
	for len(changes) > 0 {
		is := changes[0].to
		i, found := slices.BinarySearchFunc(rest, is, compareSubscribers)
		all, rest = append(all, rest[:i]...), rest[i:]
		if found {
			is, rest = rest[0], rest[1:]
		}
		for to := is; len(changes) > 0 && compareSubscribers(changes[0].to, to) == 0; changes = changes[1:] {
			is = is.with(changes[0].by)
		}
		if len(is.from) > 0 {
			all = append(all, is)
		}
	}
	return append(all, rest...)
}

// To returns the subscriptions to some files, sorted.
func (s *Subscribers) To(files map[string]bool) []*Subscriber {
	var list []*Subscriber
	for _, file := range slices.Sorted(maps.Keys(files)) {
		i, _ := slices.BinarySearchFunc(s.All, file, func(sub *Subscriber, file string) int { return cmp.Compare(sub.File, file) })
		for ; i < len(s.All) && s.All[i].File == file; i++ {
			list = append(list, s.All[i])
		}
	}
	return list
}

// Shares reports whether sub shares a subscription with an element of All, so that Envoy holds the
// subscription already.
func (s *Subscribers) Shares(sub *Subscriber) bool {
	_, shares := slices.BinarySearchFunc(s.All, sub, compareSubscribers)
	return shares
}

// statPrefixOf returns the stat prefix that a subscription has; "" for none.
func statPrefixOf(sub xds.Subscription) string {
	switch sub.Target {
	case xds.Endpoints:
		c := sub.Node.Message.(*clusterv3.Cluster)
		return envoy.EDS(cmp.Or(c.GetAltStatName(), c.GetName()))
	case xds.RouteConfiguration:
		// Connection managers share a subscription, and Envoy keeps the stat_prefix of the
		// first, even when that one is gone.
		return envoy.RDS(envoy.Any, sub.Name)
	case xds.ScopedRoutes:
		scopes, _ := xds.Enclosing[*hcmv3.ScopedRoutes](sub.Node)
		return envoy.SRDS(envoy.Any, scopes.GetName())
	case xds.Secret:
		return envoy.SDS(sub.Name)
	case xds.ExtensionConfig:
		return envoy.ECDS(envoy.Any, sub.Name)
	}
	return ""
}
