// Package matcher holds the rules about matchers: of routes, of xds.type.matcher and others.
package matcher

import "xdspub/validate"

// Rules are all of them, sorted by code.
var Rules = []*validate.Rule{
	malformedMatcher,
	neverMatches,
	unsupportedMatcher,
}
