// Package syntax holds the rules about texts in a language of their own, such as Lua or URIs.
package syntax

import (
	"xdspub/validate"
	"xdspub/validate/facts"
)

// Rules are the rules of the family, sorted by code.
var Rules = facts.Family("syntax", validate.Envoy,
	badCELExpression,
	badFormatString,
	badJWKS,
	badRegex,
	luaSyntax,
	malformedURI,
	pathTemplate,
)
