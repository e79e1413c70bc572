package xds

import (
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Kind is how a reference finds its target.
type Kind int

const (
	// ClusterName names a cluster of the cluster manager: a cluster of CDS, or a static cluster.
	ClusterName Kind = iota
	// ListenerName names a listener, as an internal address does.
	ListenerName
	// Subscribed names a resource that a config source beside the name delivers.
	Subscribed
	// Local names a part of the same resource or of the bootstrap, or settings that must be equal wherever their
	// name stands.
	Local
	// Locator is an xdstp:// resource locator.
	Locator
)

// Reference is one row of the catalogue.
type Reference struct {
	// Field is the field of the name: a string, a list of strings, or a map whose keys are names.
	Field protoreflect.FullName
	Kind  Kind
	// Target is the type of the target; nil if no Type is the target's.
	Target *Type
	// Names describes the target, as in "Cluster.name".
	Names string
}

// Use is a name in a field of the catalogue, in one message.
type Use struct {
	*Reference
	Name string

	node  *Node
	index int  // in a list; -1 for none
	isKey bool // Name is a key of a map
}

// Path returns the path of the name in the walked message: the path of a field, of an element of a list or of an
// entry of a map.
func (u Use) Path() Path {
	p := u.node.Path().Field(string(u.Field.Name()))
	switch {
	case u.isKey:
		return p.Key(u.Name)
	case u.index >= 0:
		return p.Index(u.index)
	}
	return p
}

// Refers reports whether a message type can have Uses.
func Refers(message protoreflect.FullName) bool { return len(referencesByMessage()[message]) > 0 }

// Uses returns the names in the fields of the node's message, without the messages below. It leaves out empty
// names, which mean "not set" in each field of the catalogue.
func (n *Node) Uses() []Use {
	names := n.shapeIn().names
	if len(names) == 0 {
		return nil
	}
	var uses []Use
	r := n.Message.ProtoReflect()
	add := func(ref *Reference, name string, index int, isKey bool) {
		if name != "" {
			uses = append(uses, Use{ref, name, n, index, isKey})
		}
	}
	for _, named := range names {
		ref, fd := named.Reference, named.fd
		if !r.Has(fd) {
			continue
		}
		switch {
		case fd.IsMap():
			for _, k := range sortedKeys(r.Get(fd).Map()) {
				add(ref, k.String(), -1, true)
			}
		case fd.IsList() && fd.Kind() == protoreflect.StringKind:
			list := r.Get(fd).List()
			for i := range list.Len() {
				add(ref, list.Get(i).String(), i, false)
			}
		case fd.Kind() == protoreflect.StringKind:
			add(ref, r.Get(fd).String(), -1, false)
		}
	}
	return uses
}

var referencesByMessage = sync.OnceValue(func() map[protoreflect.FullName][]*Reference {
	index := make(map[protoreflect.FullName][]*Reference)
	for i := range References {
		ref := &References[i]
		message := ref.Field.Parent()
		index[message] = append(index[message], ref)
	}
	return index
})
