package address

import "google.golang.org/protobuf/reflect/protoreflect"

// resolverAddresses are the fields with addresses of DNS servers.
var resolverAddresses = []protoreflect.FullName{
	"envoy.config.cluster.v3.Cluster.dns_resolvers",
	"envoy.config.core.v3.DnsResolutionConfig.resolvers",
	"envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig.resolvers",
}
