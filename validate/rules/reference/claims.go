package reference

import (
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

// subscribers maps the name of an endpoint assignment to the resources that subscribe to it, from any config
// source.
var subscribers = validate.NewIndex(nil, func(s *xds.Snapshot, r *xds.Resource, add func(string, *xds.Resource)) {
	for _, sub := range r.Facts().Subscriptions {
		if sub.Target == xds.Endpoints && sub.Name != "" {
			add(sub.Name, r)
		}
	}
})

// served indexes subscriptions to this Snapshot. It maps the name that askedFor returns to the subscribing
// resources. It has the subscriptions to endpoint assignments and to the virtual hosts of VHDS, and those to the
// route configurations that scopes name.
var served = validate.NewIndex(nil, func(s *xds.Snapshot, r *xds.Resource, add func(string, *xds.Resource)) {
	for _, sub := range r.Facts().Subscriptions {
		switch sub.Target {
		case xds.Endpoints, xds.VirtualHost:
		case xds.RouteConfiguration:
			if _, named := sub.Node.Message.(*hcmv3.Rds); named {
				continue
			}
		default:
			continue
		}
		if s.Serves(sub) {
			add(askedFor(sub.Target, sub.Name), r)
		}
	}
})

// askedFor returns the name in served for a subscription.
func askedFor(t *xds.Type, name string) string { return t.API + " " + name }

// isServed reports whether a subscription to this Snapshot asks for a name.
func isServed(p *validate.LookupPass, t *xds.Type, name string) bool {
	_, ok := served.First(p.Snapshot, askedFor(t, name))
	return ok
}

// isUnclaimed reports whether nothing subscribes to an endpoint assignment. It returns false if the bootstrap has a
// static cluster of the name, because this cluster may be an EDS cluster.
func isUnclaimed(p *validate.LookupPass, name string) bool {
	if name == "" || p.BootstrapFacts.Has(xds.Cluster, name) {
		return false
	}
	_, asked := subscribers.First(p.Snapshot, name)
	return !asked
}

// claims pairs each name of a missing assignment with the assignment that the name likely means. Only assignments
// without a subscription are paired. Each name of a pair maps to the other name.
var claims = validate.NewTable([]*xds.Type{xds.Endpoints}, func(p *validate.LookupPass) map[string]string {
	var missing, unclaimed []string
	seen := make(map[string]bool)
	for _, name := range subscribers.Names(p.Snapshot) {
		seen[name] = true
		if isServed(p, xds.Endpoints, name) && p.Snapshot.Lookup(xds.Endpoints, name) == nil {
			missing = append(missing, name)
		}
	}
	for _, r := range facts.Named(p.Snapshot.Of(xds.Endpoints)) {
		if !seen[r.Name] && isUnclaimed(p, r.Name) {
			seen[r.Name] = true
			unclaimed = append(unclaimed, r.Name)
		}
	}
	means := make(map[string]string)
	words := diag.NewCandidates(unclaimed)
	for _, name := range missing {
		near := words.Nearest(name)
		if near == "" && len(missing) == 1 && len(unclaimed) == 1 {
			near = unclaimed[0]
		}
		if near != "" {
			means[name], means[near] = near, name
		}
	}
	return means
}, subscribers, served)
