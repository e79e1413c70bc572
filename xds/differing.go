package xds

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// Differing returns the paths of the innermost fields in which the messages of two resources of one type differ, in
// the order of the .proto files. It returns no more than most paths.
func (r *Resource) Differing(other *Resource, most int) []Path {
	d := differing{registry: r.Registry, most: most}
	d.messages("", r.Message().ProtoReflect(), other.Message().ProtoReflect())
	return d.fields
}

// differing collects the fields in which two messages differ.
type differing struct {
	registry *Registry
	most     int
	fields   []Path
}

func (d *differing) add(path Path) {
	if len(d.fields) < d.most {
		d.fields = append(d.fields, path)
	}
}

// messages compares two messages of one type at a path.
func (d *differing) messages(path Path, a, b protoreflect.Message) {
	one, isAny := a.Interface().(*anypb.Any)
	if isAny {
		d.anys(path, one, b.Interface().(*anypb.Any))
		return
	}
	fields := a.Descriptor().Fields()
	for i := 0; i < fields.Len() && len(d.fields) < d.most; i++ {
		fd := fields.Get(i)
		at := path.Field(string(fd.Name()))
		switch one, two := a.Get(fd), b.Get(fd); {
		case a.Has(fd) != b.Has(fd):
			d.add(at)
		case !a.Has(fd) || one.Equal(two):
		case fd.IsList() && fd.Message() != nil && one.List().Len() == two.List().Len():
			for i := range one.List().Len() {
				d.messages(at.Index(i), one.List().Get(i).Message(), two.List().Get(i).Message())
			}
		case fd.Message() != nil && !fd.IsList() && !fd.IsMap() && !isWellKnown(fd.Message()):
			d.messages(at, one.Message(), two.Message())
		default:
			d.add(at)
		}
	}
}

// isWellKnown reports whether Differing compares a message as one value, such as a Duration.
func isWellKnown(md protoreflect.MessageDescriptor) bool {
	return md.FullName().Parent() == "google.protobuf" && md.FullName() != "google.protobuf.Any"
}

// anys compares the payloads of two Anys at a path.
func (d *differing) anys(path Path, a, b *anypb.Any) {
	if proto.Equal(a, b) {
		return
	}
	one, err := d.registry.unpack(a)
	two, other := d.registry.unpack(b)
	before := len(d.fields)
	if err == nil && other == nil && one.ProtoReflect().Descriptor() == two.ProtoReflect().Descriptor() {
		d.messages(path, one.ProtoReflect(), two.ProtoReflect())
	}
	if len(d.fields) == before {
		d.add(path)
	}
}
