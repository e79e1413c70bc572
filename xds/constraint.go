package xds

import "google.golang.org/protobuf/proto"

// Constraints returns an error where a message, or one that it holds, breaks a constraint that
// the API declares for its fields. It does not look into an Any. It is the one place that calls
// the generated checks: it finds them by an interface and not by name, so that scripts/deadcode
// can leave them out.
func Constraints(m proto.Message) error {
	if m, ok := m.(interface{ ValidateAll() error }); ok {
		return m.ValidateAll()
	}
	return nil
}
