// Package envoyapi knows what the binaries of Envoy hold, a Version each: types of messages,
// extensions and the fields that take them, cluster types, load balancing policies, filters
// that end a chain. Envoy says all of that itself, and tests ask it again. A Version is
// handed to those who judge by it.
package envoyapi

import (
	_ "embed"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Version is what one version of Envoy has, without contrib.
type Version struct {
	// Name is the version, as in 1.40.0.
	Name string
	// ExtensionPoints are the fields of the API that take the configuration of an extension
	// and that Envoy looks at when it takes a resource. What stands in a matcher depends on
	// what is matched, and is not here.
	ExtensionPoints []ExtensionPoint
	// ClusterKinds are the cluster factories.
	ClusterKinds []ClusterKind

	policies   []protoreflect.FullName // of load balancing
	terminal   map[string][]protoreflect.FullName
	perRoute   map[protoreflect.FullName]protoreflect.FullName
	absent     func() map[protoreflect.FullName]bool
	extensions func() extensionTable
	held       func() typeNames
	points     func() map[protoreflect.FullName][]ExtensionPoint
}

// Versions are all that are known, the newest first.
var Versions = []*Version{Latest}

// Latest is the version that the Go packages of the API belong to.
var Latest = version(Version{
	Name:            "1.40.0",
	ExtensionPoints: extensionPoints,
	ClusterKinds:    clusterKinds,
	policies:        loadBalancingPolicies,
	terminal:        terminalFilters,
	perRoute:        perRouteTypes,
}, extensionsText, absentTypes)

//go:embed v1.40.0/extensions.txt
var extensionsText string

//go:embed v1.40.0/absent-types.txt
var absentTypes string

// version completes a Version by the texts of its folder, which are read once somebody asks.
func version(v Version, extensions, absent string) *Version {
	v.extensions = sync.OnceValue(func() extensionTable { return parseExtensions(extensions) })
	v.absent = sync.OnceValue(func() map[protoreflect.FullName]bool { return parseAbsent(absent) })
	v.held = sync.OnceValue(func() typeNames { return namesOf(v.Holds) })
	v.points = sync.OnceValue(func() map[protoreflect.FullName][]ExtensionPoint { return pointsByMessage(v.ExtensionPoints) })
	return &v
}

func parseAbsent(text string) map[protoreflect.FullName]bool {
	set := make(map[protoreflect.FullName]bool)
	for line := range strings.Lines(text) {
		if name := strings.TrimSpace(line); name != "" && name[0] != '#' {
			set[protoreflect.FullName(name)] = true
		}
	}
	return set
}

// Holds reports whether the binary holds a message type of the API that is linked. Where it does not, "could not find
// @type" loses the whole file, however deep the type stands.
func (v *Version) Holds(name protoreflect.FullName) bool {
	if v.absent()[name] {
		return false
	}
	_, err := protoregistry.GlobalTypes.FindMessageByName(name)
	return err == nil
}
