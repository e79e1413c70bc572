// Package extension holds the rules about typed configurations: is the type known, does it fit there.
package extension

import (
	"xdspub/validate"
	"xdspub/validate/facts"
)

// Rules are all of them, sorted by code.
var Rules = facts.Family("extension", validate.Envoy,
	extensionConfigType,
	misplacedExtension,
	unknownType,
)
