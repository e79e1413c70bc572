package envoyapi

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// OnMissing is Envoy's reaction to a reference with a missing target, and tells when Envoy looks for the
// target. For Refused and Conditional, Envoy looks while it loads the resource with the reference: a resource
// in a bootstrap finds targets in the bootstrap only, whatever CDS and LDS bring later. For BreaksTraffic,
// Dynamic and Ignored, Envoy looks when it needs the target.
type OnMissing int

const (
	// Refused: Envoy rejects the resource that holds the reference.
	Refused OnMissing = iota
	// Conditional: Envoy rejects the resource if it validates clusters: in an inline
	// route configuration unless validate_clusters is false, in RDS only if true.
	Conditional
	// Warned: Envoy logs a warning and takes a default.
	Warned
	// BreaksTraffic: Envoy accepts the resource, and requests fail.
	BreaksTraffic
	// Static: the target must stand in the bootstrap. Envoy rejects the resource if the target is a cluster of CDS.
	Static
	// Dynamic: Envoy takes the name from each request.
	Dynamic
	// BootstrapOnly: the field stands only in a bootstrap.
	BootstrapOnly
	// Ignored: Envoy accepts the resource, and the setting has no effect.
	Ignored
)

// onMissing has the words of on-missing.txt, in the order of the constants.
var onMissing = []string{"refused", "conditional", "warned", "breaks-traffic", "static", "dynamic", "bootstrap-only", "ignored"}

// OnMissing returns Envoy's reaction if the target of a reference is missing. field is the field of a row of
// xds.References.
func (v *Version) OnMissing(field protoreflect.FullName) OnMissing {
	return v.tables().onMissing[field]
}

func (r *reader) onMissing(file string) map[protoreflect.FullName]OnMissing {
	all := make(map[protoreflect.FullName]OnMissing)
	for _, words := range r.rows(file, 2) {
		does := slices.Index(onMissing, words[1])
		if does < 0 {
			r.fail(fmt.Errorf("%s: unknown word %q", file, words[1]))
		}
		all[protoreflect.FullName(words[0])] = OnMissing(does)
	}
	return all
}
