// Package bootstrap holds the rules about bootstraps, and about what needs something of them.
package bootstrap

import (
	"xdspub/validate"
	"xdspub/validate/facts"
)

// Rules are the rules of the family, sorted by code.
var Rules = facts.Family("bootstrap", validate.Envoy,
	bootstrapExtension,
	bootstrapOptions,
	earlySubscription,
	runtimeValue,
)
