package xds

import (
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Kind is how a reference finds its target.
type Kind int

const (
	// ClusterName names a cluster of the cluster manager: from CDS or static.
	ClusterName Kind = iota
	// ListenerName names a listener, as an internal address does.
	ListenerName
	// Subscribed names a resource that a config source beside it delivers.
	Subscribed
	// Local names something inside the same resource, or a settings block that
	// must be equal wherever its name stands.
	Local
	// Locator is an xdstp:// resource locator.
	Locator
)

// Reference is one row of the catalogue.
type Reference struct {
	// Field is the string, list of strings or map (by its keys) that names.
	Field protoreflect.FullName
	Kind  Kind
	// Target is the type of the target, nil if the target is no resource.
	Target *Type
	// Names describes the target in words.
	Names string
}

// Use is a name in a message that refers to a target, by a field of the catalogue.
type Use struct {
	*Reference
	Name string

	node  *Node
	index int  // in a list; -1 for none
	isKey bool // Name is a key of a map
}

// Path returns the path of the field, of the element of a list or of the entry of a map below the walked message.
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

// Uses returns the references that stand directly in the node's message, empty
// names left out: in every field of the catalogue "" means "not set".
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
