package xds

import "google.golang.org/protobuf/proto"

// Constraints is nil where a message keeps the constraints that the API declares for its
// fields, and those of all that it holds, up to each Any. It is the one place that calls
// the generated checks: they are asked for, not named, so that scripts/deadcode can leave
// them out.
func Constraints(m proto.Message) error {
	if m, ok := m.(interface{ ValidateAll() error }); ok {
		return m.ValidateAll()
	}
	return nil
}
