// Package syntax holds the rules about texts in a language of their own, such as Lua or URIs.
package syntax

import "xdspub/validate"

// Rules are all of them, sorted by code.
var Rules = []*validate.Rule{
	badCELExpression,
	badFormatString,
	badJWKS,
	badRegex,
	luaSyntax,
	malformedURI,
	pathTemplate,
}
