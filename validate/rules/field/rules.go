// Package field holds the rules about fields of any message: constraints, durations, deprecation.
package field

import "xdspub/validate"

// Rules are all of them, sorted by code.
var Rules = []*validate.Rule{
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
}
