package envoyapi

import "google.golang.org/protobuf/reflect/protoreflect"

// IsUnchecked reports whether Envoy does not hold messages of that name against the
// constraints of its API.
func (v *Version) IsUnchecked(message protoreflect.FullName) bool {
	return v.tables().uncheckedMessages[message]
}

// IsCheckedPolicy reports whether Envoy checks a load balancing policy against the constraints of its API.
// Envoy does not check most policies.
func (v *Version) IsCheckedPolicy(message protoreflect.FullName) bool {
	return v.tables().checkedPolicies[message]
}

// RefusesNaN reports whether Envoy takes no NaN in the message of that field, or could not
// work with one.
func (v *Version) RefusesNaN(field protoreflect.FullName) bool { return v.tables().nanRefused[field] }

// OptionalReferences returns the messages and fields with optional references: if Envoy does not find the
// target, the owner of the reference goes on.
func (v *Version) OptionalReferences() []protoreflect.FullName {
	return v.tables().optionalReferences
}

// PartialReferences returns the messages and fields that name something without which only a part
// of the traffic fails.
func (v *Version) PartialReferences() []protoreflect.FullName { return v.tables().partialReferences }
