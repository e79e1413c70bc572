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
)

// checkSubscriptions checks what is asked of this Snapshot. A config source of
// the user's own is answered from elsewhere.
func checkSubscriptions(p *validate.SnapshotPass) {
	scopesFold := false
	parents := make(map[string]bool) // the route configurations that ask for virtual hosts
	claims := claimEndpoints(p)
	for _, s := range p.Subscribers {
		switch served := p.Snapshot.Serves(s.Subscription); {
		case s.Target == xds.Secret:
			checkSecret(&p.LookupPass, s, served)
		case !served:
		case s.Target == xds.Endpoints:
			checkEndpoints(&p.LookupPass, s, claims)
		case s.Target == xds.ExtensionConfig:
			if s.Name != "" && p.Snapshot.Lookup(s.Target, s.Name) == nil {
				reportMissing(&p.LookupPass, s, s.Resource.Refusal())
			}
		case s.Target == xds.ScopedRoutes:
			if len(p.Snapshot.Of(s.Target)) == 0 {
				p.Report(validate.Finding{
					Resource: s.Resource, Path: s.NamePath, Warning: true,
					Message: "no scoped route configuration is defined: every request gets 404",
					Help:    "define one for each scope",
				})
			}
		case s.Target == xds.VirtualHost:
			parents[s.Name] = true
		case s.Target == xds.RouteConfiguration:
			if _, named := s.Node.Message.(*hcmv3.Rds); !named {
				scopesFold = true
			} else if p.Snapshot.Lookup(s.Target, s.Name) == nil {
				reportMissing(&p.LookupPass, s, s.Resource.Refusal())
			}
		}
	}
	if scopesFold {
		checkScopes(&p.LookupPass)
	}
	checkHosts(&p.LookupPass, parents)
}

// reportMissing reports that a subscription asks for what does not exist.
func reportMissing(p *validate.LookupPass, s xds.Subscriber, consequence string) {
	f := validate.Finding{
		Resource: s.Resource,
		Path:     s.NamePath,
		Message:  fmt.Sprintf("unknown %s: %s", xds.Key{Type: s.Target, Name: s.Name}, consequence),
	}
	suggest(p, &f, s.Target, s.Name)
	p.Report(f)
}

// checkSecret: without a config source, a secret that is not in the Snapshot is a
// static one of the bootstrap.
func checkSecret(p *validate.LookupPass, s xds.Subscriber, served bool) {
	switch {
	case s.Name == "" || !p.Snapshot.FromBootstrap() && p.Snapshot.Lookup(xds.Secret, s.Name) != nil: // field-constraint, or found
	case served:
		reportMissing(p, s, s.Resource.Refusal())
	case s.Source.GetConfigSourceSpecifier() == nil && !p.BootstrapFacts.Has(xds.Secret, s.Name):
		reportMissing(p, s, "neither here nor in the bootstrap, "+s.Resource.Refusal())
	}
}

func checkEndpoints(p *validate.LookupPass, s xds.Subscriber, c claims) {
	if s.Name == "" || p.Snapshot.Lookup(xds.Endpoints, s.Name) != nil {
		return // name-missing, or found
	}
	f := validate.Finding{
		Resource: s.Resource,
		Path:     s.NamePath,
		Message:  fmt.Sprintf("no endpoint assignment for %q: %s", s.Name, s.Resource.Refusal()),
		Help:     "define one with this cluster_name, or correct eds_cluster_config.service_name",
	}
	if meant := c.meant[s.Name]; meant != nil {
		f.Help, f.Correction = "", diag.Correction{Wrong: s.Name, Right: meant.Name}
		f.Related = facts.Related(meant, "cluster_name", "no cluster asks for this one")
	}
	p.Report(f)
}

// checkScopes checks the route configurations that scopes name.
func checkScopes(p *validate.LookupPass) {
	for _, r := range facts.Named(p.Snapshot.Of(xds.ScopedRoutes)) {
		name := r.Message.(*routev3.ScopedRouteConfiguration).GetRouteConfigurationName()
		if name != "" && p.Snapshot.Lookup(xds.RouteConfiguration, name) == nil {
			f := validate.Finding{
				Resource: r,
				Path:     "route_configuration_name",
				Message:  fmt.Sprintf("unknown route configuration %q: requests of this scope get 404", name),
			}
			suggest(p, &f, xds.RouteConfiguration, name)
			p.Report(f)
		}
	}
}

// checkHosts checks that each VHDS virtual host belongs to a route configuration
// that asks for its virtual hosts.
func checkHosts(p *validate.LookupPass, parents map[string]bool) {
	for _, r := range facts.Named(p.Snapshot.Of(xds.VirtualHost)) {
		parent := xds.RoutesOfHost(r.Name)
		f := validate.Finding{Resource: r, Path: xds.Path(r.Type.Name)}
		switch {
		case parents[parent]:
			continue
		case !strings.Contains(r.Name, "/"):
			f.Message = fmt.Sprintf("virtual host %q belongs to no route configuration", r.Name)
			f.Help = "a virtual host of its own is named <route configuration>/<virtual host>"
		case p.Snapshot.Lookup(xds.RouteConfiguration, parent) == nil:
			f.Message = fmt.Sprintf("virtual host %q belongs to an unknown route configuration %q", r.Name, parent)
			suggest(p, &f, xds.RouteConfiguration, parent)
		default:
			f.Message = fmt.Sprintf("virtual host %q belongs to route configuration %q, which does not ask for it", r.Name, parent)
			f.Help = "set vhds in the route configuration"
			f.Related = facts.Related(p.Snapshot.Lookup(xds.RouteConfiguration, parent), "name", "this one has no vhds from here")
		}
		p.Report(f)
	}
}
