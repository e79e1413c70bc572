package xds

import "google.golang.org/protobuf/proto"

// Constraints returns an error with all violations if a message, or a message inside, breaks a constraint that the
// API declares for its fields. Constraints does not look into an Any.
//
// Only Constraints calls the generated checks. It calls them by an interface: scripts/deadcode compiles the program
// without the generated checks.
func Constraints(m proto.Message) error {
	if m, ok := m.(interface{ ValidateAll() error }); ok {
		return m.ValidateAll()
	}
	return nil
}
