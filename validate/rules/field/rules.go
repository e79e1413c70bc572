// Package field holds the rules about fields of any message: constraints, durations, deprecation.
package field

import (
	"xdspub/validate"
	"xdspub/validate/facts"
)

// Rules are the rules of the family, sorted by code.
var Rules = facts.Family("field", validate.Envoy,
	backoffInterval,
	deprecatedField,
	duplicateEntry,
	durationRange,
	fieldConstraint,
	ignoredWatch,
	maxBelowBase,
	nestedTooDeeply,
	newerThanEnvoy,
	notAHost,
	notANumber,
	portOutOfRange,
	refusedByOlder,
)
