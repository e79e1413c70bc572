package xds

import (
	_ "embed"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
)

//go:embed absent-types.txt
var absentTypes string

var absent = sync.OnceValue(func() map[protoreflect.FullName]bool {
	set := make(map[protoreflect.FullName]bool)
	for line := range strings.Lines(absentTypes) {
		if name := strings.TrimSpace(line); name != "" && name[0] != '#' {
			set[protoreflect.FullName(name)] = true
		}
	}
	return set
})

// InEnvoy reports whether the Envoy 1.40.0 binary holds a message type that the
// Go packages hold. Where it does not, "could not find @type" loses the whole
// file, however deep the type stands.
func InEnvoy(name protoreflect.FullName) bool { return !absent()[name] }
