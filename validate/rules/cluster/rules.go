// Package cluster holds the rules about clusters: type, endpoints, load balancing, health, protocols.
package cluster

import (
	"xdspub/validate"
	"xdspub/validate/facts"
)

// Rules are the rules of the family, sorted by code.
var Rules = facts.Family("cluster", validate.Envoy,
	circuitBreakers,
	cleartextUpstream,
	clusterOfClusters,
	clusterProtocolOptions,
	clusterType,
	dropOverloads,
	dynamicForwardProxy,
	healthCheck,
	http2Settings,
	ledsEndpoints,
	loadBalancing,
	localCluster,
	noHealthyEndpoints,
	proxyProtocolTLV,
	transportSocketMatch,
	unsupportedMetadataKind,
	upstreamFilter,
	weightSum,
)
