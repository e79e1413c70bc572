package xds

import (
	"google.golang.org/protobuf/proto"

	"xdspub/xds/params"
)

// Composer edits the message of a resource that Compose makes.
type Composer struct{ parts []*Resource }

// Take returns a copy of the message of a part, for the edited message. The composed resource is then only for
// clients that the part is for, too.
func (c *Composer) Take(part *Resource) proto.Message {
	c.parts = append(c.parts, part)
	return proto.Clone(part.Message())
}

// Compose returns a copy of the resource after an Edit of the copy. edit gets messages of other resources from
// Composer.Take only, so that For and SecretFor of the copy follow from all its parts. changed reports whether edit
// changed a message.
func (r *Resource) Compose(edit func(*Composer, *Node) bool) (composed *Resource, changed bool) {
	c := &Composer{}
	composed = r.With(proto.Clone(r.Message()))
	changed = composed.Edit(func(n *Node) bool { return edit(c, n) })
	if len(c.parts) == 0 {
		return composed, changed
	}
	var all, secret []params.Constraints
	for _, part := range append(c.parts, r) {
		all = append(all, part.For)
		if part.HoldsSecret() {
			secret = append(secret, part.SecretFor())
		}
	}
	of := params.And(secret...)
	composed.For, composed.secrets = params.And(all...), &of
	return composed, changed
}

// SecretFor returns the constraints of the secrets in the resource. A composed resource has the
// constraints of the parts that hold a secret, any other resource has For.
func (r *Resource) SecretFor() params.Constraints {
	if r.secrets == nil {
		return r.For
	}
	return *r.secrets
}

// ForSame reports whether two resources are for the same clients, with the secrets in them.
func (r *Resource) ForSame(other *Resource) bool {
	return r.For.Equal(other.For) && r.SecretFor().Equal(other.SecretFor())
}
