package transition

import (
	"slices"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"xdspub/xds"
)

// Keeps reports whether the rules certainly find nothing in a change. changes are the changed resources, s is the
// Snapshot after the change, and g is Options.Guard. Keeps assumes that the rules find nothing between the Snapshot
// before the change and itself. Its cost depends on the number of changes only.
func Keeps(changes []xds.Edited, s *xds.Snapshot, g *Guard) bool {
	return !slices.ContainsFunc(changes, func(e xds.Edited) bool { return !keeps(e, s) }) && !shiftsWeights(changes) &&
		(g == nil || keepsGuards(changes, s, g))
}

func keeps(e xds.Edited, s *xds.Snapshot) bool {
	if e.Same() && e.Is.ForSame(e.Was) { // the resource has the same content for the same clients
		return true
	}
	if e.Is != nil && e.Is.UsesSingletons() || asksForExtensions(e.Was) || asksForExtensions(e.Is) {
		return false
	}
	return keeping[e.Key().Type](e, s)
}

// keeping reports for each type whether a changed resource of the type can't lead to a finding.
var keeping = map[*xds.Type]func(xds.Edited, *xds.Snapshot) bool{
	xds.Listener: func(e xds.Edited, s *xds.Snapshot) bool {
		return e.Was != nil && e.Is != nil && KeepsSockets(e.Was, e.Is) && getsSecrets(e.Is, s)
	},
	xds.Cluster: func(e xds.Edited, s *xds.Snapshot) bool { return e.Is == nil || getsSecrets(e.Is, s) },
	xds.Secret: func(e xds.Edited, _ *xds.Snapshot) bool {
		return e.Is == nil || e.Was != nil && xds.SecretKind(e.Was.Message().(*tlsv3.Secret)) == xds.SecretKind(e.Is.Message().(*tlsv3.Secret))
	},
	xds.ExtensionConfig:    func(e xds.Edited, _ *xds.Snapshot) bool { return e.Is == nil },
	xds.Runtime:            always,
	xds.LocalityEndpoints:  always,
	xds.Endpoints:          always,
	xds.RouteConfiguration: always,
	xds.VirtualHost:        always,
	xds.ScopedRoutes:       always,
}

func always(xds.Edited, *xds.Snapshot) bool { return true }

func asksForExtensions(r *xds.Resource) bool {
	return r != nil && r.AsksFor(xds.ExtensionConfig)
}

// getsSecrets reports whether each secret that a resource subscribes to is of the wanted kind.
func getsSecrets(r *xds.Resource, s *xds.Snapshot) bool {
	return !slices.ContainsFunc(r.Facts().Subscriptions, func(sub xds.Subscription) bool {
		if sub.Target != xds.Secret {
			return false
		}
		secret := s.Lookup(xds.Secret, sub.Name)
		return secret != nil && xds.SecretKind(secret.Message().(*tlsv3.Secret)) != xds.WantedSecret(sub.Node.Field())
	})
}
