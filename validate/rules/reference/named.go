package reference

import (
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	compositev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/composite/v3"
	authzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	procv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	thriftv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/thrift_proxy/v3"
	"google.golang.org/protobuf/proto"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

// checkName checks a reference to a cluster or a listener by its name.
func checkName(p *validate.LookupPass, n *xds.Node, use xds.Use) {
	if p.GRPCAlone() {
		checkNameForGRPC(p, n, use)
		return
	}
	static, exists := p.BootstrapFacts.Has(use.Target, use.Name), p.Exists(use.Target, use.Name)
	if p.Envoy.OnMissing(use.Field) == envoyapi.Conditional && (static || exists && !facts.LoadsFirst(p, n)) { // a fast way out, for most references
		return
	}
	if n.InMetadata() || facts.InRemovedTracer(n) {
		return // Envoy does not read these messages
	}
	if facts.Inside(n, "envoy.config.endpoint.v3.LedsClusterLocalityConfig") && facts.Inside(n, "envoy.config.cluster.v3.Cluster.load_assignment") {
		return // leds-endpoints reports it: Envoy does not ask for these endpoints
	}
	switch load := loadAt(&p.Pass, n, use); {
	case facts.Inside(n, "envoy.config.bootstrap.v3.Bootstrap.hds_config", "envoy.config.bootstrap.v3.ClusterManager.load_stats_config"):
		if !static && n.Name() != "envoy.config.core.v3.ApiConfigSource" { // otherwise reported by bootstrap-options
			reportUnknown(p, use, "static-cluster", fmt.Sprintf("cluster %q is not a static cluster of the bootstrap: Envoy shuts "+
				"down when it starts", use.Name), false)
		}
	case load == envoyapi.Static, load == envoyapi.BootstrapOnly,
		load == envoyapi.Refused && facts.LoadsFirst(p, n) && !p.Lacks(use.Target, use.Name):
		if !static {
			reportNotStatic(p, use)
		}
	case load != envoyapi.Refused && load != envoyapi.BreaksTraffic && load != envoyapi.Ignored: // Envoy chooses the target at run time
	case load == envoyapi.BreaksTraffic && !exists && comesOnDemand(p, n, use):
	case exists:
		if l := outerListener(p, n, use); l != nil {
			p.Report(validate.Finding{
				Check:   "internal-listener",
				Path:    use.Path(),
				Message: fmt.Sprintf("listener %q is not an internal listener: Envoy accepts this, and %s", use.Name, requestsFail),
				Help:    "replace the address of that listener by internal_listener: {}",
				Related: facts.Related(l, "name", "this listener has an address"),
			})
		}
	case p.Lacks(use.Target, use.Name), use.Kind == xds.ListenerName && !facts.HasInternalListeners(&p.Pass):
		does, warning := consequence(p, n, load)
		reportUnknown(p, use, missing(use.Target.Noun), fmt.Sprintf("unknown %s %q: %s", use.Target.Noun, use.Name, does), warning)
	}
}

// reportUnknown reports a reference to a missing target, with a suggestion.
func reportUnknown(p *validate.LookupPass, use xds.Use, check validate.CheckName, message string, warning bool) {
	f := validate.Finding{Check: check, Path: use.Path(), Message: message, Warning: warning}
	if p.HasRoom(f) {
		suggest(p, &f, use.Target, use.Name)
	}
	p.Report(f)
}

// reportNotStatic reports a reference that only the static resources of the bootstrap can resolve.
func reportNotStatic(p *validate.LookupPass, use xds.Use) {
	f := validate.Finding{
		Check:   "static-cluster",
		Path:    use.Path(),
		Message: fmt.Sprintf("%[1]s %[2]q is not a static %[1]s of the bootstrap: %[3]s", use.Target.Noun, use.Name, p.Resource.Refusal()),
		Help:    "define it in the bootstrap, and name that bootstrap with --bootstrap",
	}
	if p.Resource.OfBootstrap() {
		f.Help = "define it in static_resources.clusters"
	}
	if other := p.Snapshot.Lookup(use.Target, use.Name); other != nil {
		f.Related = facts.Related(other, "name", "this one is loaded too late: Envoy needs it in the bootstrap")
	}
	p.Report(f)
}

// consequence returns Envoy's reaction to a missing target. warning is true if the finding is a warning.
func consequence(p *validate.LookupPass, n *xds.Node, load envoyapi.OnMissing) (does string, warning bool) {
	switch load {
	case envoyapi.Refused:
		return p.Resource.Refusal(), false
	case envoyapi.Ignored:
		return "Envoy accepts this, and " + noEffect, true
	}
	words, fatal := aftermath(p, n)
	return "Envoy accepts this, and " + words, !fatal
}

// outerListener returns the listener that an endpoint names, if it is not an internal listener; nil otherwise.
func outerListener(p *validate.LookupPass, n *xds.Node, use xds.Use) *xds.Resource {
	if use.Kind != xds.ListenerName || !facts.Inside(n, "envoy.config.endpoint.v3.Endpoint.address") {
		return nil
	}
	r := p.Snapshot.Lookup(xds.Listener, use.Name)
	if r == nil || r.Message().(*listenerv3.Listener).GetInternalListener() != nil {
		return nil
	}
	return r
}

// missing returns the name of the check for missing targets. noun is the noun of the target.
func missing(noun string) validate.CheckName {
	return validate.CheckName(strings.ToLower(strings.ReplaceAll(noun, " ", "-")))
}

// suggest adds a correction of a missing name to a finding, or help if no existing name is similar.
func suggest(p *validate.LookupPass, f *validate.Finding, t *xds.Type, name string) {
	nearest := validate.Once(&p.Pass, nearestTo{t, name}, func() string { return p.Snapshot.Nearest(t, name) })
	if nearest != "" {
		f.Correction = diag.Correction{Wrong: name, Right: nearest}
	} else {
		f.Help = fmt.Sprintf("define the %s, or correct the name", t.Noun)
	}
}

// loadAt returns Envoy's reaction to a missing target of a reference at n. For some fields, this reaction depends
// on the messages around the field.
func loadAt(p *validate.Pass, n *xds.Node, use xds.Use) envoyapi.OnMissing {
	does := p.Envoy.OnMissing(use.Field)
	switch use.Field {
	case "envoy.config.core.v3.GrpcService.EnvoyGrpc.cluster_name", "envoy.config.core.v3.ApiConfigSource.cluster_names":
		return loadInConfigSource(n, does)
	case "envoy.config.core.v3.HttpUri.cluster":
		if facts.Inside(n, "envoy.config.trace.v3.ZipkinConfig") {
			return envoyapi.Refused
		}
	}
	if does == envoyapi.Conditional {
		if validatesClusters(p, n) {
			return envoyapi.Refused
		}
		return envoyapi.BreaksTraffic
	}
	return does
}

// loadInConfigSource returns Envoy's reaction to a missing cluster of a config source. Envoy starts most
// subscriptions, and sinks for statistics, before it gets clusters by CDS, and refuses a source whose cluster is
// missing then. Envoy starts the subscriptions to secrets and virtual hosts, and load reports, later. It does not
// look up the cluster of a source of type DELTA_GRPC.
func loadInConfigSource(n *xds.Node, otherwise envoyapi.OnMissing) envoyapi.OnMissing {
	if facts.Inside(n, "envoy.config.bootstrap.v3.Bootstrap.stats_sinks", "envoy.config.bootstrap.v3.Bootstrap.DynamicResources.ads_config") {
		return envoyapi.Static
	}
	source := facts.Enclosing(n, "envoy.config.core.v3.ConfigSource")
	if source == nil {
		return otherwise
	}
	switch source.Field() {
	case "envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig.sds_config", "envoy.config.route.v3.Vhds.config_source",
		"envoy.config.cluster.v3.Cluster.lrs_server":
		return envoyapi.BreaksTraffic
	}
	if api, _ := xds.Enclosing[*corev3.ApiConfigSource](n); api.GetApiType() == corev3.ApiConfigSource_DELTA_GRPC {
		return envoyapi.BreaksTraffic
	}
	return envoyapi.Static
}

// validatesClusters reports whether Envoy looks up the clusters of a route when it loads the route.
// validate_clusters decides. By default, Envoy looks them up in an inline route configuration, and not in one from
// RDS. It never looks up clusters in a matcher.
func validatesClusters(p *validate.Pass, n *xds.Node) bool {
	routes, at := xds.Enclosing[*routev3.RouteConfiguration](n)
	switch {
	case facts.Inside(n, "envoy.config.route.v3.VirtualHost.matcher"):
		return false
	case routes == nil:
		// Of the other protocols, only Thrift looks up its clusters. A virtual host without a route configuration
		// around it comes by VHDS.
		thrift, _ := xds.Enclosing[*thriftv3.RouteConfiguration](n)
		return thrift != nil && (thrift.GetValidateClusters() == nil || thrift.GetValidateClusters().GetValue())
	case !isUsed(p, n, routes):
		return false
	case routes.GetValidateClusters() != nil:
		return routes.GetValidateClusters().GetValue()
	default:
		return at.Parent != nil
	}
}

// isUsed reports whether a route uses the settings at n. If n is above the routes, a route uses its mirrors if it
// has none of its own, and a cluster specifier plugin if it names the plugin.
func isUsed(p *validate.Pass, n *xds.Node, routes *routev3.RouteConfiguration) bool {
	mirrors := func(r *routev3.RouteAction) bool { return len(r.GetRequestMirrorPolicies()) == 0 }
	switch around := n.Parent.Message.(type) {
	case *routev3.VirtualHost:
		return validate.Once(p, usersOf{around}, func() bool { return someRoute([]*routev3.VirtualHost{around}, mirrors) })
	case *routev3.RouteConfiguration:
		return validate.Once(p, usersOf{around}, func() bool {
			own := func(h *routev3.VirtualHost) bool { return len(h.GetRequestMirrorPolicies()) > 0 }
			return someRoute(slices.DeleteFunc(slices.Clone(routes.GetVirtualHosts()), own), mirrors)
		})
	}
	plugin, at := xds.Enclosing[*routev3.ClusterSpecifierPlugin](n)
	if plugin == nil || at.Field() != "envoy.config.route.v3.RouteConfiguration.cluster_specifier_plugins" {
		return true
	}
	named := validate.Once(p, pluginsOf{routes}, func() map[string]bool { return namedPlugins(routes.GetVirtualHosts()) })
	return named[plugin.GetExtension().GetName()]
}

// The keys of validate.Once: usersOf for isUsed, pluginsOf for namedPlugins, membersOf for othersServe, nearestTo
// for suggest.
type (
	usersOf   struct{ proto.Message }
	pluginsOf struct{ *routev3.RouteConfiguration }
	membersOf struct{ proto.Message }
	nearestTo xds.Key
)

// namedPlugins returns the names of the cluster specifier plugins that routes use.
func namedPlugins(hosts []*routev3.VirtualHost) map[string]bool {
	named := make(map[string]bool)
	someRoute(hosts, func(r *routev3.RouteAction) bool {
		named[r.GetClusterSpecifierPlugin()] = true
		return false
	})
	return named
}

// someRoute reports whether such returns true for the action of a route.
func someRoute(hosts []*routev3.VirtualHost, such func(*routev3.RouteAction) bool) bool {
	return slices.ContainsFunc(hosts, func(h *routev3.VirtualHost) bool {
		return slices.ContainsFunc(h.GetRoutes(), func(r *routev3.Route) bool { return such(r.GetRoute()) })
	})
}

// Effects of a missing target that Envoy accepts.
const (
	requestsFail = "requests fail"
	someFail     = "the requests that need it fail"
	goesOn       = "continues without it"
	noEffect     = "it has no effect"
)

// aftermath returns the effect of a missing target that Envoy accepts, as tests with Envoy showed it. fatal is true
// if requests fail because of it.
func aftermath(p *validate.LookupPass, n *xds.Node) (words string, fatal bool) {
	routes, _ := xds.Enclosing[*routev3.RouteConfiguration](n)
	switch {
	case routes != nil && !isUsed(&p.Pass, n, routes):
		return noEffect, false
	case failsOpen(n) || othersServe(p, n) || facts.Inside(n, p.Envoy.OptionalReferences()...):
		return goesOn, false
	case facts.Inside(n, p.Envoy.PartialReferences()...):
		return someFail, false
	default:
		return requestsFail, true
	}
}

// failsOpen reports whether a filter around the node lets requests pass when the filter fails, or gets no requests.
func failsOpen(n *xds.Node) bool {
	for n = n.Parent; n != nil; n = n.Parent {
		switch m := n.Message.(type) {
		case *hcmv3.HttpFilter:
			return m.GetDisabled()
		case *authzv3.ExtAuthz:
			if m.GetFailureModeAllow() || m.GetFilterEnabled() != nil || m.GetFilterEnabledMetadata() != nil {
				return true
			}
		case *procv3.ExternalProcessor:
			mode := m.GetProcessingMode()
			if m.GetFailureModeAllow() || mode.GetRequestHeaderMode() == procv3.ProcessingMode_SKIP &&
				mode.GetResponseHeaderMode() == procv3.ProcessingMode_SKIP {
				return true
			}
		case *procv3.ExtProcOverrides:
			if m.GetFailureModeAllow().GetValue() {
				return true
			}
		case interface{ GetFailureModeAllow() bool }: // the network filters with this field
			if m.GetFailureModeAllow() {
				return true
			}
		}
	}
	return false
}

// othersServe reports whether requests go to another target if the target of the node is missing: to another member
// of the aggregate or composite cluster, or because the weight of the node is 0.
func othersServe(p *validate.LookupPass, n *xds.Node) bool {
	switch m := n.Message.(type) {
	case *aggregatev3.ClusterConfig:
		return validate.Once(&p.Pass, membersOf{m}, func() bool {
			return slices.ContainsFunc(m.GetClusters(), func(name string) bool { return !p.Lacks(xds.Cluster, name) })
		})
	case *compositev3.ClusterConfig_ClusterEntry:
		around, _ := n.Parent.Message.(*compositev3.ClusterConfig) // around is nil if a type of the user wraps the entry
		return validate.Once(&p.Pass, membersOf{around}, func() bool {
			return slices.ContainsFunc(around.GetClusters(), func(e *compositev3.ClusterConfig_ClusterEntry) bool { return !p.Lacks(xds.Cluster, e.GetName()) })
		})
	case *routev3.WeightedCluster_ClusterWeight:
		return m.GetWeight() != nil && m.GetWeight().GetValue() == 0
	}
	return false
}
