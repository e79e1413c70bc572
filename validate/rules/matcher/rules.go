// Package matcher holds the rules about matchers: of routes, of xds.type.matcher and others.
package matcher

import (
	"xdspub/validate"
	"xdspub/validate/facts"
)

// Rules are the rules of the family, sorted by code.
var Rules = facts.Family("matcher", validate.Envoy,
	malformedMatcher,
	neverMatches,
	unsupportedMatcher,
)
