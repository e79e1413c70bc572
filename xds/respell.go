package xds

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds/xdstp"
)

// Respell gives the xdstp names in the node's message their canonical spelling: the names of references and, if the
// node is a root, the name of the resource. Envoy subscribes by the canonical spelling, and compares names as text.
// Respell leaves names of virtual hosts, keys of maps, and references of the kinds Local and Locator as they are.
// changed reports whether a name had another spelling.
func (n *Node) Respell() (changed bool) {
	r := n.Message.ProtoReflect()
	if t := TypeOf(n.Name()); n.Parent == nil && t != nil && t.Name != "" && t != VirtualHost {
		changed = respell(r, r.Descriptor().Fields().ByName(t.Name))
	}
	for _, named := range n.shapeIn().names {
		if named.Kind != Local && named.Kind != Locator && !named.fd.IsMap() && r.Has(named.fd) {
			changed = respell(r, named.fd) || changed
		}
	}
	return changed
}

// respell gives the names in a field, a string or a list of strings, their canonical spelling.
func respell(m protoreflect.Message, fd protoreflect.FieldDescriptor) (changed bool) {
	if fd.Kind() != protoreflect.StringKind {
		return false
	}
	if !fd.IsList() {
		was := m.Get(fd).String()
		is := xdstp.Canonical(was)
		if changed = is != was; changed {
			m.Set(fd, protoreflect.ValueOfString(is))
		}
		return changed
	}
	list := m.Get(fd).List()
	for i := range list.Len() {
		was := list.Get(i).String()
		if is := xdstp.Canonical(was); is != was {
			list.Set(i, protoreflect.ValueOfString(is))
			changed = true
		}
	}
	return changed
}

// Respelled gives the name in the resource's Key its canonical spelling. It is called after Respell of the message.
// The resource must not be in a Snapshot yet.
func (r *Resource) Respelled() {
	r.Name = r.Type.Canonical(r.Name)
}

// Canonical returns the canonical spelling of the name of a resource. The name of a virtual host has two parts
// (RoutesOfHost), and only one spelling.
func (t *Type) Canonical(name string) string {
	if t == VirtualHost {
		return name
	}
	return xdstp.Canonical(name)
}
