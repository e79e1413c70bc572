// Package extension holds the rules about typed configurations: is the type known, does it fit there.
package extension

import (
	"xdspub/validate"
	"xdspub/validate/facts"
)

// Rules are the rules of the family, sorted by code.
var Rules = facts.Family("extension", validate.Envoy,
	extensionConfigType,
	misplacedExtension,
	unknownType,
)
