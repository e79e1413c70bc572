// Package xds has the terms of the xDS protocol: the table of resource types, Resource, Snapshot,
// versions, and the catalogue of fields through which one resource names another. It works on
// messages alone, and knows no files, YAML, rules or disk.
package xds

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Type is one row of the table of resource types. The row has all that differs between types:
// a new resource type is a new row.
type Type struct {
	// API is the discovery service's name, as in "CDS".
	API string
	// Message is the full name of the resource's protobuf message.
	Message protoreflect.FullName
	// Noun is what people call one such resource.
	Noun string
	// Name is the field that holds the resource's name.
	Name protoreflect.Name
}

// URL returns the type URL of the resource, as in DiscoveryResponse.type_url.
func (t *Type) URL() string { return URLPrefix + string(t.Message) }

func (t *Type) String() string { return t.API }

// WithoutAny returns, in words, what Envoy does with a file of the type without a resource.
func (t *Type) WithoutAny() string {
	switch t {
	case Cluster, Listener, ScopedRoutes:
		return "Envoy removes all that it had from here"
	case Endpoints, RouteConfiguration:
		return "Envoy keeps what it has, and has none after a restart"
	default:
		return "Envoy rejects the file"
	}
}

// URLPrefix is the part of a type URL before the message name.
const URLPrefix = "type.googleapis.com/"

// The resource types that a source tree can hold.
var (
	Secret             = &Type{"SDS", "envoy.extensions.transport_sockets.tls.v3.Secret", "secret", "name"}
	ExtensionConfig    = &Type{"ECDS", "envoy.config.core.v3.TypedExtensionConfig", "extension config", "name"}
	Runtime            = &Type{"RTDS", "envoy.service.runtime.v3.Runtime", "runtime layer", "name"}
	Endpoints          = &Type{"EDS", "envoy.config.endpoint.v3.ClusterLoadAssignment", "endpoint assignment", "cluster_name"}
	Cluster            = &Type{"CDS", "envoy.config.cluster.v3.Cluster", "cluster", "name"}
	RouteConfiguration = &Type{"RDS", "envoy.config.route.v3.RouteConfiguration", "route configuration", "name"}
	VirtualHost        = &Type{"VHDS", "envoy.config.route.v3.VirtualHost", "virtual host", "name"}
	ScopedRoutes       = &Type{"SRDS", "envoy.config.route.v3.ScopedRouteConfiguration", "scoped route configuration", "name"}
	Listener           = &Type{"LDS", "envoy.config.listener.v3.Listener", "listener", "name"}
)

// Bootstrap is the Type of an Envoy's bootstrap. It is no resource type, and no Snapshot holds
// one; rules check it like a resource.
var Bootstrap = &Type{"bootstrap", "envoy.config.bootstrap.v3.Bootstrap", "bootstrap", ""}

// Types is the table; a type stands before the types whose resources name it.
var Types = []*Type{Secret, ExtensionConfig, Runtime, Endpoints, Cluster, RouteConfiguration, VirtualHost, ScopedRoutes, Listener}

// TypeOf returns the row of a message's full name, or nil if messages of that
// name are no resources.
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
