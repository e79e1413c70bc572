// Package reference holds the rules about names: what they stand for, who asks for it, and where.
package reference

import "xdspub/validate/facts"

// Rules are all of them, sorted by code.
var Rules = facts.Family("reference", nil,
	configSource,
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
