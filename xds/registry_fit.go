package xds

import (
	"fmt"

	"google.golang.org/protobuf/types/descriptorpb"
)

// fits returns an error if given, a file of the user, contradicts known, the API's file of the same path. Each file
// may belong to another version, and lack declarations of the other file.
func fits(known, given *descriptorpb.FileDescriptorProto) error {
	scope := given.GetPackage()
	if known.GetPackage() != scope {
		return fmt.Errorf("%s is built in with the package %s, but has the package %s here: rename your file", given.GetName(), known.GetPackage(), scope)
	}
	at := func(what string) error {
		return fmt.Errorf("%s is built in, but defines %s differently here: rename your file, or use the built-in one", given.GetName(), what)
	}
	if what := messagesFit(scope, known.GetMessageType(), given.GetMessageType()); what != "" {
		return at(what)
	}
	if what := enumsFit(scope, known.GetEnumType(), given.GetEnumType()); what != "" {
		return at(what)
	}
	if what := fieldsFit(scope, known.GetExtension(), given.GetExtension()); what != "" {
		return at(what)
	}
	return nil
}

// messagesFit returns the full name of a declaration that has different meanings in two lists of messages; empty
// for none.
func messagesFit(scope string, known, given []*descriptorpb.DescriptorProto) string {
	by := declared(known)
	for _, is := range given {
		was := by[is.GetName()]
		if was == nil {
			continue
		}
		within := scope + "." + is.GetName()
		if what := fieldsFit(within, was.GetField(), is.GetField()); what != "" {
			return what
		}
		if what := enumsFit(within, was.GetEnumType(), is.GetEnumType()); what != "" {
			return what
		}
		if what := messagesFit(within, was.GetNestedType(), is.GetNestedType()); what != "" {
			return what
		}
	}
	return ""
}

func enumsFit(scope string, known, given []*descriptorpb.EnumDescriptorProto) string {
	by := declared(known)
	for _, is := range given {
		was := by[is.GetName()]
		if was == nil {
			continue
		}
		values := declared(was.GetValue())
		for _, v := range is.GetValue() {
			if of := values[v.GetName()]; of != nil && of.GetNumber() != v.GetNumber() {
				return scope + "." + is.GetName() + "." + v.GetName()
			}
		}
	}
	return ""
}

// fieldsFit is messagesFit for fields: two fields of the same name or number must agree in name, number, type,
// extended message, and in whether they are repeated.
func fieldsFit(scope string, known, given []*descriptorpb.FieldDescriptorProto) string {
	by := declared(known)
	numbers := make(map[int32]*descriptorpb.FieldDescriptorProto, len(known))
	for _, f := range known {
		numbers[f.GetNumber()] = f
	}
	for _, is := range given {
		for _, was := range []*descriptorpb.FieldDescriptorProto{by[is.GetName()], numbers[is.GetNumber()]} {
			if was != nil && (was.GetName() != is.GetName() || was.GetNumber() != is.GetNumber() || was.GetExtendee() != is.GetExtendee() ||
				was.GetType() != is.GetType() || was.GetTypeName() != is.GetTypeName() || (was.GetLabel() == repeated) != (is.GetLabel() == repeated)) {
				return scope + "." + is.GetName()
			}
		}
	}
	return ""
}

const repeated = descriptorpb.FieldDescriptorProto_LABEL_REPEATED

// declared returns declarations by name.
func declared[D interface{ GetName() string }](list []D) map[string]D {
	by := make(map[string]D, len(list))
	for _, d := range list {
		by[d.GetName()] = d
	}
	return by
}
