// Package extension holds the rules about typed configurations: is the type known, does it fit there.
package extension

import "xdspub/validate"

// Rules are all of them, sorted by code.
var Rules = []*validate.Rule{
	extensionConfigType,
	misplacedExtension,
	unknownType,
}
