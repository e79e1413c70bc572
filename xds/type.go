// Package xds has the terms of the xDS protocol: the table of resource types, Resource, Snapshot, versions, and the
// catalogue of fields through which one resource names another resource. The package works on messages alone, and
// knows no files, YAML or rules.
package xds

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds/xdstp"
)

// Type is one row of the table of resource types. The row has each answer that depends on the type
// alone: a new resource type is a new row, and tools/types fails for a row that a stage does not know.
type Type struct {
	// API is the discovery service's name, as in "CDS".
	API string
	// Message is the full name of the resource's protobuf message.
	Message protoreflect.FullName
	// Noun names a resource of the type in messages.
	Noun string
	// Name is the field that holds the resource's name, "" if only the wrapper of a resource names it.
	Name protoreflect.Name
	// Asked tells what one subscription asks for.
	Asked Asking
	// Group returns the name of a resource's group. Group is nil unless clients ask for the type InGroups.
	Group func(name string) string
	// Wildcard means that an empty list of names asks for all resources of the type.
	Wildcard bool
	// Turn is the place of the type in the order of make before break, in which a server sends changes.
	// https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol#eventual-consistency-considerations
	Turn int
	// Entrypoints are the types whose files Envoy must read before it subscribes to resources of this type;
	// empty if only the bootstrap subscribes.
	Entrypoints []*Type
	// Upstream means that the type is Cluster, or that Envoy acknowledges clusters only after it has the
	// resources of the type that the clusters ask for.
	Upstream bool
	// Warms means that Envoy acknowledges listeners only after it has the resources of the type that the
	// listeners ask for.
	Warms bool
	// Routes means that resources of the type lead requests to clusters, and that draining listeners follow them.
	Routes bool
	// Extensions means that resources of the type can have extensions of Envoy, such as filters.
	Extensions bool
	// AtOnce means that a resource is removed in the first update after the source tree lost it. Resources of other
	// types stay until their trim, since clients may still use them.
	AtOnce bool
	// TTLs means that responses by state of the world may have TTLs. Envoy 1.40 crashes if a TTL of endpoints or
	// routes of an aggregated stream ends (serve.TestEnvoyTTLCrash).
	TTLs bool
	// Static is the list in static_resources of a bootstrap that holds resources of the type, "" for none.
	Static protoreflect.Name
	// Plural is the last part of the path by which REST asks for the type, "" if no REST client can ask for it.
	Plural string
	// KeptWithout means that Envoy accepts a file without the resource, and keeps the resource that it has.
	KeptWithout bool
}

// Asking is what one subscription asks for.
type Asking int

const (
	// ByName asks for one resource. A file has exactly this resource.
	ByName Asking = iota
	// AsWhole asks for all resources of the type. A file, and a response by state of the world, has all of them:
	// Envoy removes the resources that it lacks.
	AsWhole
	// InGroups asks for a group of resources, which may change, or for one resource of a group. No file can carry
	// such resources, and Envoy asks for them by the incremental protocol only. The name of such a resource stands
	// in its wrapper.
	InGroups
)

// URL returns the type URL of the resource, as in DiscoveryResponse.type_url.
func (t *Type) URL() string { return URLPrefix + string(t.Message) }

func (t *Type) String() string { return t.API }

// WithoutAny returns, in words, what Envoy does with a file of the type without a resource.
func (t *Type) WithoutAny() string {
	switch {
	case t.Asked == AsWhole:
		return "Envoy removes all that it had from here"
	case t.KeptWithout:
		return "Envoy keeps what it has, and has none after a restart"
	default:
		return "Envoy rejects the file"
	}
}

// URLPrefix is the part of a type URL before the message name.
const URLPrefix = "type.googleapis.com/"

// The resource types that a source tree can hold.
var (
	Secret = &Type{
		API: "SDS", Message: "envoy.extensions.transport_sockets.tls.v3.Secret", Noun: "secret", Name: "name",
		Turn: 5, Entrypoints: Entrypoints, Upstream: true, Warms: true,
		Static: "secrets", Plural: "secrets",
	}
	ExtensionConfig = &Type{
		API: "ECDS", Message: "envoy.config.core.v3.TypedExtensionConfig", Noun: "extension config", Name: "name",
		Turn: 6, Entrypoints: Entrypoints, Warms: true,
		Extensions: true, Plural: "extension_configs",
	}
	Runtime = &Type{
		API: "RTDS", Message: "envoy.service.runtime.v3.Runtime", Noun: "runtime layer", Name: "name",
		Turn: 1, TTLs: true, Plural: "runtime",
	}
	Endpoints = &Type{
		API: "EDS", Message: "envoy.config.endpoint.v3.ClusterLoadAssignment", Noun: "endpoint assignment", Name: "cluster_name",
		Turn: 3, Entrypoints: []*Type{Cluster}, Upstream: true,
		KeptWithout: true, Plural: "endpoints",
	}
	LocalityEndpoints = &Type{
		API: "LEDS", Message: "envoy.config.endpoint.v3.LbEndpoint", Noun: "endpoint",
		Asked: InGroups, Group: xdstp.Collection, Turn: 4, Entrypoints: []*Type{Cluster}, Upstream: true, AtOnce: true,
	}
	Cluster = &Type{
		API: "CDS", Message: "envoy.config.cluster.v3.Cluster", Noun: "cluster", Name: "name",
		Asked: AsWhole, Wildcard: true, Turn: 2, Upstream: true,
		Extensions: true, TTLs: true, Static: "clusters", Plural: "clusters",
	}
	RouteConfiguration = &Type{
		API: "RDS", Message: "envoy.config.route.v3.RouteConfiguration", Noun: "route configuration", Name: "name",
		Turn: 9, Entrypoints: []*Type{Listener}, Warms: true, Routes: true,
		Extensions: true, KeptWithout: true, Plural: "routes",
	}
	VirtualHost = &Type{
		API: "VHDS", Message: "envoy.config.route.v3.VirtualHost", Noun: "virtual host", Name: "name",
		Asked: InGroups, Group: RoutesOfHost, Wildcard: true, Turn: 10, Entrypoints: []*Type{Listener}, Warms: true, Routes: true,
		Extensions: true,
	}
	ScopedRoutes = &Type{
		API: "SRDS", Message: "envoy.config.route.v3.ScopedRouteConfiguration", Noun: "scoped route configuration", Name: "name",
		Asked: AsWhole, Wildcard: true, Turn: 8, Entrypoints: []*Type{Listener}, Warms: true, Routes: true,
		Extensions: true, Plural: "scoped-routes",
	}
	Listener = &Type{
		API: "LDS", Message: "envoy.config.listener.v3.Listener", Noun: "listener", Name: "name",
		Asked: AsWhole, Wildcard: true, Turn: 7,
		Extensions: true, AtOnce: true, TTLs: true, Static: "listeners", Plural: "listeners",
	}
)

// Entrypoints are the types of which a bootstrap subscribes to all resources. Through these resources, Envoy finds
// the resources of all other types except Runtime.
var Entrypoints = []*Type{Cluster, Listener}

// Bootstrap is the Type of an Envoy's bootstrap. A bootstrap is no resource, and no Snapshot holds one; rules
// check a bootstrap like a resource.
var Bootstrap = &Type{API: "bootstrap", Message: "envoy.config.bootstrap.v3.Bootstrap", Noun: "bootstrap"}

// Types is the table. A type stands before the types that subscribe to it, except VirtualHost.
var Types = []*Type{Secret, ExtensionConfig, Runtime, LocalityEndpoints, Endpoints, Cluster, RouteConfiguration, VirtualHost, ScopedRoutes, Listener}

// InTurn are the Types in the order of make before break.
var InTurn = slices.SortedFunc(slices.Values(Types), func(a, b *Type) int { return cmp.Compare(a.Turn, b.Turn) })

// TypesThat returns the types for which is returns true, in the order of Types.
func TypesThat(is func(*Type) bool) []*Type {
	return slices.DeleteFunc(slices.Clone(Types), func(t *Type) bool { return !is(t) })
}

// TypeOfAPI returns the row of a discovery service's name, or nil.
func TypeOfAPI(api string) *Type {
	for _, t := range Types {
		if t.API == api {
			return t
		}
	}
	return nil
}

// TypeOf returns the row of a message's full name, or nil if these messages are no resources.
func TypeOf(name protoreflect.FullName) *Type {
	for _, t := range Types {
		if t.Message == name {
			return t
		}
	}
	return nil
}

// TypeOfURL returns the row of a type URL, as in DiscoveryRequest.type_url, or nil.
func TypeOfURL(url string) *Type {
	name, ok := strings.CutPrefix(url, URLPrefix)
	if !ok {
		return nil
	}
	return TypeOf(protoreflect.FullName(name))
}
