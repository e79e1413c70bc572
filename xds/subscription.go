package xds

import (
	"slices"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Subscription is the part of a message that asks a config source for resources of a type in the table.
type Subscription struct {
	// Node is the message that asks.
	Node *Node
	// Target is the type of the resources.
	Target *Type
	// Name is the name of the resource. An empty Name asks for all scoped routes, or for the route configurations
	// that scopes name. For virtual hosts, Name is the name of their route configuration; for endpoints of LEDS,
	// the name of their collection.
	Name string
	// NamePath is the path of the name; the path of Node if Node has no name. SourcePath is the path of the config
	// source, present or absent. Both begin at the walked message.
	NamePath, SourcePath Path
	// Source is nil if the message has no config source.
	Source *corev3.ConfigSource
	// Set replaces the config source in the node's message.
	Set func(*corev3.ConfigSource)
}

// Subscriber is a Subscription and the resource that it stands in.
type Subscriber struct {
	Subscription
	Resource *Resource
}

// Subscribing lists the messages that have a Subscription.
var Subscribing = []protoreflect.FullName{
	"envoy.config.cluster.v3.Cluster",
	"envoy.config.core.v3.ExtensionConfigSource",
	"envoy.config.endpoint.v3.LedsClusterLocalityConfig",
	"envoy.config.route.v3.Vhds",
	"envoy.extensions.filters.network.http_connection_manager.v3.Rds",
	"envoy.extensions.filters.network.http_connection_manager.v3.ScopedRds",
	"envoy.extensions.filters.network.http_connection_manager.v3.ScopedRoutes",
	"envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig",
}

// Subscription returns the Subscription of the node's message. ok is false if the message subscribes to nothing.
func (n *Node) Subscription() (s Subscription, ok bool) {
	s, ok = n.subscription()
	s.Node = n
	return s, ok
}

func (n *Node) subscription() (Subscription, bool) {
	switch m := n.Message.(type) {
	case *clusterv3.Cluster:
		return n.endpoints(m)
	case *hcmv3.Rds:
		return Subscription{
			Target: RouteConfiguration, Name: m.GetRouteConfigName(), Source: m.GetConfigSource(),
			NamePath: n.Path().Field("route_config_name"), SourcePath: n.Path().Field("config_source"),
			Set: func(source *corev3.ConfigSource) { m.ConfigSource = source },
		}, true
	case *hcmv3.ScopedRds:
		return Subscription{
			Target: ScopedRoutes, Source: m.GetScopedRdsConfigSource(),
			NamePath: n.Path(), SourcePath: n.Path().Field("scoped_rds_config_source"),
			Set: func(source *corev3.ConfigSource) { m.ScopedRdsConfigSource = source },
		}, true
	case *hcmv3.ScopedRoutes:
		return Subscription{
			Target: RouteConfiguration, Source: m.GetRdsConfigSource(),
			NamePath: n.Path(), SourcePath: n.Path().Field("rds_config_source"),
			Set: func(source *corev3.ConfigSource) { m.RdsConfigSource = source },
		}, true
	case *routev3.Vhds:
		routes, _ := Enclosing[*routev3.RouteConfiguration](n)
		return Subscription{
			Target: VirtualHost, Name: routes.GetName(), Source: m.GetConfigSource(),
			NamePath: n.Path(), SourcePath: n.Path().Field("config_source"),
			Set: func(source *corev3.ConfigSource) { m.ConfigSource = source },
		}, true
	case *endpointv3.LedsClusterLocalityConfig:
		if c, _ := Enclosing[*clusterv3.Cluster](n); c != nil {
			return Subscription{}, false // Envoy takes it in assignments of EDS only
		}
		return Subscription{
			Target: LocalityEndpoints, Name: m.GetLedsCollectionName(), Source: m.GetLedsConfig(),
			NamePath: n.Path().Field("leds_collection_name"), SourcePath: n.Path().Field("leds_config"),
			Set: func(source *corev3.ConfigSource) { m.LedsConfig = source },
		}, true
	case *tlsv3.SdsSecretConfig:
		return Subscription{
			Target: Secret, Name: m.GetName(), Source: m.GetSdsConfig(),
			NamePath: n.Path().Field("name"), SourcePath: n.Path().Field("sds_config"),
			Set: func(source *corev3.ConfigSource) { m.SdsConfig = source },
		}, true
	case *corev3.ExtensionConfigSource:
		// Every message that holds an ExtensionConfigSource names the extension in its field name.
		named, _ := n.Parent.Message.(interface{ GetName() string })
		if named == nil {
			return Subscription{}, false
		}
		return Subscription{
			Target: ExtensionConfig, Name: named.GetName(), Source: m.GetConfigSource(),
			NamePath: n.Parent.Path().Field("name"), SourcePath: n.Path().Field("config_source"),
			Set: func(source *corev3.ConfigSource) { m.ConfigSource = source },
		}, true
	}
	return Subscription{}, false
}

// endpoints returns the subscription of an EDS cluster.
func (n *Node) endpoints(m *clusterv3.Cluster) (Subscription, bool) {
	// The cluster's type decides, not eds_cluster_config: without it, an EDS cluster subscribes to its own name.
	if m.GetType() != clusterv3.Cluster_EDS || m.GetClusterType() != nil {
		return Subscription{}, false
	}
	eds := m.GetEdsClusterConfig()
	s := Subscription{
		Target: Endpoints, Name: eds.GetServiceName(), Source: eds.GetEdsConfig(),
		NamePath: n.Path().Field("eds_cluster_config").Field("service_name"), SourcePath: n.Path().Field("eds_cluster_config").Field("eds_config"),
		Set: func(source *corev3.ConfigSource) {
			if m.EdsClusterConfig == nil {
				m.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{}
			}
			m.EdsClusterConfig.EdsConfig = source
		},
	}
	if s.Name == "" {
		s.Name, s.NamePath = m.GetName(), n.Path().Field("name")
	}
	return s, true
}

// Serves reports whether this Snapshot answers a subscription: the config source says ads or self, or is absent and
// the type allows that. EDS always allows an absent config source. SDS allows it if the Snapshot has the secret;
// otherwise the secret is static in the bootstrap. Any other config source asks another server. A Snapshot from a
// bootstrap serves nothing: its files answer (see Answer).
func (s *Snapshot) Serves(sub Subscription) bool {
	if s.FromBootstrap() {
		return false
	}
	if FromSnapshot(sub.Source) {
		return true
	}
	if sub.Source.GetConfigSourceSpecifier() != nil {
		return false
	}
	return sub.Target == Endpoints || sub.Target == Secret && s.Lookup(Secret, sub.Name) != nil
}

// Answer returns the resource of this Snapshot that answers a subscription to one resource; nil if the Snapshot
// lacks the resource, or does not answer the subscription.
func (s *Snapshot) Answer(sub Subscription) *Resource {
	switch {
	case s.FromBootstrap():
		return s.byPath[subscribed{sub.Target, PathOf(sub.Source)}]
	case s.Serves(sub):
		return s.Lookup(sub.Target, sub.Name)
	}
	return nil
}

// PathOf returns the path of the file that a config source names; empty for a config source of another kind.
func PathOf(source *corev3.ConfigSource) string {
	if path := source.GetPath(); path != "" {
		return path
	}
	return source.GetPathConfigSource().GetPath()
}

// FromServer reports whether a config source asks a server: a server that it names, or by ads or self the server of
// another config source.
func FromServer(source *corev3.ConfigSource) bool {
	return source.GetConfigSourceSpecifier() != nil && PathOf(source) == ""
}

// AskedByEnvoy returns the config sources of a resource by which only Envoy itself asks a server: for names on demand,
// or because the config source names another server than the one that sent the resource.
func AskedByEnvoy(r *Resource) (nodes []*Node) {
	f := r.Facts()
	for _, n := range f.ConfigSources {
		source := n.Message.(*corev3.ConfigSource)
		isSubscription := slices.ContainsFunc(f.Subscriptions, func(s Subscription) bool { return s.Source == source })
		if FromServer(source) && !(FromSnapshot(source) && isSubscription) && n.Field() != "envoy.config.cluster.v3.Cluster.lrs_server" {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// ServedBy reports whether an Envoy with bootstrap b gets the clusters or the listeners of CDS or LDS from a
// server. ServedBy is false for other types.
func ServedBy(b *bootstrapv3.Bootstrap, t *Type) bool {
	dynamic := b.GetDynamicResources()
	return t == Cluster && FromServer(dynamic.GetCdsConfig()) || t == Listener && FromServer(dynamic.GetLdsConfig())
}

// FromSnapshot reports whether a config source asks the server that sent the resource around it: the config source
// is ads or self.
func FromSnapshot(source *corev3.ConfigSource) bool {
	switch source.GetConfigSourceSpecifier().(type) {
	case *corev3.ConfigSource_Ads, *corev3.ConfigSource_Self:
		return true
	}
	return false
}
