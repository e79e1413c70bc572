package envoyapi

import "google.golang.org/protobuf/reflect/protoreflect"

// IsUnchecked reports whether Envoy does not check a type of messages against the constraints of its API.
func (v *Version) IsUnchecked(message protoreflect.FullName) bool {
	return v.tables().uncheckedMessages[message]
}

// IsCheckedPolicy reports whether Envoy checks a load balancing policy against the constraints of its API.
// Envoy does not check most policies.
func (v *Version) IsCheckedPolicy(message protoreflect.FullName) bool {
	return v.tables().checkedPolicies[message]
}

// RefusesNaN reports whether Envoy refuses NaN as the number in the message of a field, or does not work with NaN.
func (v *Version) RefusesNaN(field protoreflect.FullName) bool { return v.tables().nanRefused[field] }

// OptionalReferences returns the messages and fields with optional references: if Envoy does not find the target,
// the owner of the reference works without the target.
func (v *Version) OptionalReferences() []protoreflect.FullName {
	return v.tables().optionalReferences
}

// PartialReferences returns the messages and fields with references of a part of the traffic: if Envoy does not
// find the target, only this part fails.
func (v *Version) PartialReferences() []protoreflect.FullName { return v.tables().partialReferences }
