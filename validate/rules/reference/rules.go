// Package reference holds the rules about names: the targets of names, and the subscriptions to resources.
package reference

import "xdspub/validate/facts"

// Rules are the rules of the family, sorted by code.
var Rules = facts.Family("reference", nil,
	configSource,
	crossedOwners,
	duplicateResource,
	lostOnDemandClusters,
	nameMissing,
	orphanEndpoints,
	shadowedByBootstrap,
	unresolvedReference,
	unsupportedConfigSource,
	unusedResource,
	xdstpName,
)
