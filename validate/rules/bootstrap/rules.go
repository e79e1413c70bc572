// Package bootstrap holds the rules about bootstraps, and about what needs something of them.
package bootstrap

import "xdspub/validate"

// Rules are all of them, sorted by code.
var Rules = []*validate.Rule{
	bootstrapExtension,
	bootstrapOptions,
	earlySubscription,
	runtimeValue,
}
