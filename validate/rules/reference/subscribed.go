package reference

import (
	"fmt"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
	"xdspub/xds/xdstp"
)

// checkSubscriptions checks the subscriptions of a resource to this Snapshot. A subscription to another config
// source is not checked.
func checkSubscriptions(p *validate.LookupPass) {
	validate.Each(p, p.Resource.Facts().Subscriptions, func(s xds.Subscription) {
		switch isServed := p.Snapshot.Serves(s); {
		case s.Target == xds.Secret:
			checkSecret(p, s, isServed)
		case !isServed:
		case s.Target == xds.Endpoints:
			checkEndpoints(p, s)
		case s.Target == xds.LocalityEndpoints:
			checkCollection(p, s)
		case s.Target == xds.ExtensionConfig:
			if s.Name != "" && p.Snapshot.Lacks(s.Target, s.Name) {
				reportMissing(p, s, withoutIt(p, s))
			}
		case s.Target == xds.ScopedRoutes:
			if len(p.Snapshot.Of(s.Target)) == 0 && p.Snapshot.Complete(s.Target) {
				p.Report(validate.Finding{
					Check: "scoped-route-configuration",
					Path:  s.NamePath, Warning: true,
					Message: "no scoped route configuration exists: every request gets 404",
					Help:    "define one for each scope",
				})
			}
		case s.Target == xds.RouteConfiguration:
			if _, named := s.Node.Message.(*hcmv3.Rds); named && p.Snapshot.Lacks(s.Target, s.Name) {
				reportMissing(p, s, withoutIt(p, s))
			}
		}
	})
	switch {
	case p.Resource.Name == "":
	case p.Resource.Type == xds.ScopedRoutes:
		checkScope(p)
	case p.Resource.Type == xds.VirtualHost:
		checkHost(p)
	}
}

// withoutIt returns what the client does if a subscription has no answer.
func withoutIt(p *validate.LookupPass, s xds.Subscription) string {
	switch {
	case !p.GRPCAlone():
		return p.Resource.Refusal()
	case s.Target == xds.Endpoints, s.Target == xds.RouteConfiguration:
		return callsFail
	}
	return grpcIgnores
}

// reportMissing reports a subscription to a missing resource.
func reportMissing(p *validate.LookupPass, s xds.Subscription, consequence string) {
	f := validate.Finding{
		Check:   missing(s.Target.Noun),
		Path:    s.NamePath,
		Message: fmt.Sprintf("unknown %s: %s", xds.Key{Type: s.Target, Name: s.Name}, consequence),
		Warning: strings.HasSuffix(consequence, grpcIgnores),
	}
	suggest(p, &f, s.Target, s.Name)
	p.Report(f)
}

// checkSecret checks a subscription to a secret. A secret without a config source must be in the Snapshot or among
// the static secrets of the bootstrap.
func checkSecret(p *validate.LookupPass, s xds.Subscription, isServed bool) {
	switch {
	case s.Name == "" || !p.Snapshot.FromBootstrap() && !p.Snapshot.Lacks(xds.Secret, s.Name):
		// field-constraint reports an empty name; otherwise the secret exists.
	case isServed:
		reportMissing(p, s, withoutIt(p, s))
	case s.Source.GetConfigSourceSpecifier() == nil && !p.BootstrapFacts.Has(xds.Secret, s.Name):
		reportMissing(p, s, "it is neither here nor in the bootstrap, and "+withoutIt(p, s))
	}
}

func checkEndpoints(p *validate.LookupPass, s xds.Subscription) {
	if s.Name == "" || !p.Snapshot.Lacks(xds.Endpoints, s.Name) {
		return // name-missing reports an empty name; otherwise the assignment exists
	}
	f := validate.Finding{
		Check:   "endpoint-assignment",
		Path:    s.NamePath,
		Message: fmt.Sprintf("no endpoint assignment for %q: %s", s.Name, withoutIt(p, s)),
		Help:    "define one with this cluster_name, or correct eds_cluster_config.service_name",
	}
	if meant := claims.Hint(p.Snapshot, s.Name); meant != "" {
		f.Help, f.Correction = "", diag.Correction{Wrong: s.Name, Right: meant}
		f.Related = facts.Related(p.Snapshot.Lookup(xds.Endpoints, meant), "cluster_name", "no cluster uses this one")
	}
	p.Report(f)
}

// checkCollection warns of a locality whose LEDS collection has no endpoints. It does not report an error, because
// a service that was scaled to zero has an empty collection.
func checkCollection(p *validate.LookupPass, s xds.Subscription) {
	if _, err := xdstp.Parse(s.Name); err != nil {
		return // reported by xdstp-name or leds-endpoints
	}
	if facts.Collections.Lacks(p.Snapshot, s.Name) {
		p.Report(validate.Finding{
			Check: "endpoint-collection",
			Path:  s.NamePath, Warning: true,
			Message: fmt.Sprintf("no endpoint is in %q: the locality has none", s.Name),
			Help:    "name endpoints like the collection, with a name of their own in place of *",
		})
	}
}

// checkScope checks that the route configuration of a scope exists.
func checkScope(p *validate.LookupPass) {
	name := p.Resource.Message().(*routev3.ScopedRouteConfiguration).GetRouteConfigurationName()
	if name == "" || !p.Snapshot.Lacks(xds.RouteConfiguration, name) || !isServed(p, xds.RouteConfiguration, "") {
		return
	}
	f := validate.Finding{
		Check:   "route-configuration",
		Path:    "route_configuration_name",
		Message: fmt.Sprintf("unknown route configuration %q: requests of this scope get 404", name),
	}
	suggest(p, &f, xds.RouteConfiguration, name)
	p.Report(f)
}

// checkHost checks that a route configuration asks for the virtual host under judgement by VHDS.
func checkHost(p *validate.LookupPass) {
	r := p.Resource
	parent := xds.RoutesOfHost(r.Name)
	if !served.Lacks(p.Snapshot, askedFor(xds.VirtualHost, parent)) {
		return
	}
	f := validate.Finding{Check: "virtual-host", Path: xds.Path(r.Type.Name)}
	switch routes := p.Snapshot.Lookup(xds.RouteConfiguration, parent); {
	case !strings.Contains(r.Name, "/"):
		f.Message = fmt.Sprintf("virtual host %q does not name a route configuration", r.Name)
		f.Help = "name it <route configuration>/<virtual host>"
	case routes == nil:
		f.Message = fmt.Sprintf("virtual host %q belongs to an unknown route configuration %q", r.Name, parent)
		suggest(p, &f, xds.RouteConfiguration, parent)
	default:
		f.Message = fmt.Sprintf("virtual host %q belongs to route configuration %q, which has no vhds for this tree", r.Name, parent)
		f.Help = "set vhds with config_source: {ads: {}} in the route configuration"
		f.Related = facts.Related(routes, "name", "the route configuration is here")
	}
	p.Report(f)
}
