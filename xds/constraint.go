package xds

import "google.golang.org/protobuf/proto"

// Constraints returns an error if a message, or a message inside, breaks a constraint that the API declares
// for its fields. Constraints does not look into an Any. Only Constraints calls the generated checks. It finds
// them by an interface and not by name, so that scripts/deadcode can leave them out.
func Constraints(m proto.Message) error {
	if m, ok := m.(interface{ ValidateAll() error }); ok {
		return m.ValidateAll()
	}
	return nil
}
