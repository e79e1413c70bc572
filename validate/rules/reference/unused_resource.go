package reference

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var unusedResource = &validate.Rule{
	Code:     "unused-resource",
	Severity: diag.Info,
	OptIn:    true,
	Unused:   true,
	Doc: `Nothing in the tree uses a resource (off by default).

A route configuration, secret, extension config, scope or endpoint of LEDS that nothing in this tree
subscribes to is published and never read, for example if a listener reads it from its own path_config_source.
A cluster that nothing refers to gets no requests. If clusters can be selected at run time
(cluster_header, a Lua script, a Wasm plugin, on-demand clusters), this rule does not report
them. A cluster that only the bootstrap refers to looks unused, too. --enable unused-resource
turns the rule on. For endpoint assignments see orphan-endpoints.`,
	Checks: []diag.Check{
		{Name: "cluster", Summary: "Nothing refers to a cluster."},
		{Name: "endpoint", Summary: "Nothing subscribes to the collection of an endpoint of LEDS."},
		{Name: "extension-config", Summary: "Nothing subscribes to an extension config."},
		{Name: "route-configuration", Summary: "Nothing subscribes to a route configuration."},
		{Name: "scoped-route-configuration", Summary: "No listener uses scoped routes from this tree."},
		{Name: "secret", Summary: "Nothing subscribes to a secret."},
	},
	Collect: append(namers(), choosers...),
	Snapshot: func(p *validate.SnapshotPass) {
		used, elsewhere := usedResources(p)
		report := func(t *xds.Type, message, help string) {
			for _, r := range facts.Named(p.Snapshot.Of(t)) {
				group := groupOf(r)
				if used[r.Key] || used[group] || p.BootstrapFacts.Has(t, r.Name) {
					continue
				}
				f := validate.Finding{Check: missing(t.Noun), Resource: r, Path: xds.Path(t.Name), Message: fmt.Sprintf(message, r.Key), Help: help}
				s, ok := elsewhere[r.Key]
				if !ok {
					s, ok = elsewhere[group]
				}
				if ok {
					f.Message = fmt.Sprintf("%s is not read from this tree: its user has another config source", r.Key)
					f.Help = "write ads: {} as that config source, or remove the resource"
					f.Related = facts.Related(s.Resource, s.SourcePath, "this config source does not use this tree")
				}
				p.Report(f)
			}
		}
		if !p.Snapshot.FromBootstrap() { // in a bootstrap, each file has a subscription
			for _, t := range []*xds.Type{xds.Secret, xds.ExtensionConfig, xds.RouteConfiguration, xds.LocalityEndpoints} {
				report(t, "nothing subscribes to %s", "remove it, or refer to it")
			}
			if !used[xds.Key{Type: xds.ScopedRoutes}] {
				report(xds.ScopedRoutes, "no listener uses scoped routes from this tree: nothing "+
					"subscribes to %s", "remove it, or set scoped_rds in a listener")
			}
		}
		if !chosenAtRunTime(p) {
			report(xds.Cluster, "nothing refers to %s", "remove it, or route to it")
		}
	},
}

// groupOf returns the key of the group to which subscriptions may refer instead of the resource, such as a
// collection of LEDS. It is the zero Key if the type has no groups.
func groupOf(r *xds.Resource) xds.Key {
	if r.Type.Group == nil {
		return xds.Key{}
	}
	return xds.Key{Type: r.Type, Name: r.Type.Group(r.Name)}
}

// namers returns the messages with a field that names a cluster or a secret.
func namers() (names []protoreflect.FullName) {
	for _, ref := range xds.References {
		if ref.Target == xds.Cluster || ref.Target == xds.Secret {
			names = append(names, ref.Field.Parent())
		}
	}
	return names
}

// choosers are the messages of extensions that choose a cluster at run time, so that no field has the name of the
// cluster. Messages of all versions of Envoy are listed.
var choosers = []protoreflect.FullName{
	"envoy.extensions.dynamic_modules.v3.DynamicModuleConfig",
	"envoy.extensions.filters.http.lua.v3.Lua",
	"envoy.extensions.filters.http.lua.v3.LuaPerRoute",
	"envoy.extensions.filters.http.on_demand.v3.OnDemand",
	"envoy.extensions.filters.http.on_demand.v3.PerRouteConfig",
	"envoy.extensions.filters.http.set_filter_state.v3.Config",
	"envoy.extensions.filters.network.set_filter_state.v3.Config",
	"envoy.extensions.filters.network.sni_cluster.v3.SniCluster",
	"envoy.extensions.router.cluster_specifiers.lua.v3.LuaConfig",
	"envoy.extensions.wasm.v3.VmConfig",
}

// usedResources returns the keys of the resources that something in this tree uses. elsewhere has the first
// subscription to another config source, by the key of the resource that it asks for.
func usedResources(p *validate.SnapshotPass) (used map[xds.Key]bool, elsewhere map[xds.Key]xds.Subscriber) {
	used, elsewhere = make(map[xds.Key]bool), make(map[xds.Key]xds.Subscriber)
	for _, s := range p.Subscribers() {
		key := xds.Key{Type: s.Target, Name: s.Name}
		if p.Snapshot.Serves(s.Subscription) {
			used[key] = true
		} else if _, again := elsewhere[key]; !again && s.Source.GetConfigSourceSpecifier() != nil {
			elsewhere[key] = s
		}
	}
	for _, r := range p.Snapshot.Of(xds.ScopedRoutes) {
		for _, use := range (&xds.Node{Message: r.Message()}).Uses() {
			used[xds.Key{Type: use.Target, Name: use.Name}] = true
		}
	}
	for _, m := range p.Collected {
		for _, use := range m.Node.Uses() {
			if use.Target == xds.Cluster || use.Target == xds.Secret && m.Node.Name() != "envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig" {
				used[xds.Key{Type: use.Target, Name: use.Name}] = true
			}
		}
	}
	return used, elsewhere
}

// chosenAtRunTime reports whether something in the tree chooses clusters at run time, so that xdspub can't know
// their names.
func chosenAtRunTime(p *validate.SnapshotPass) bool {
	for _, m := range p.Collected {
		for _, name := range choosers {
			if m.Node.Name() == name {
				return true
			}
		}
		for _, use := range m.Node.Uses() {
			if use.Target == xds.Cluster && p.Envoy.OnMissing(use.Field) == envoyapi.Dynamic {
				return true
			}
		}
	}
	return false
}
