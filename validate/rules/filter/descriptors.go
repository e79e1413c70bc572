package filter

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// descriptors holds the names in a descriptor set: the methods of each service, and the fields of each message.
// Names of services and messages are full names.
type descriptors struct {
	services map[string]map[string]*method
	messages map[string]map[string]bool
}

// method holds the names of a method's messages, each with a leading dot.
type method struct{ input, output string }

// readDescriptors reads the names in a descriptor set. If whole is set, an import that is not in the set is an
// error. readDescriptors does not unmarshal the set, because hostile bytes could take a hundred times their size in
// memory.
func readDescriptors(binary []byte, whole bool) (descriptors, error) {
	r := descriptorReader{set: descriptors{make(map[string]map[string]*method), make(map[string]map[string]bool)}, files: make(map[string]bool)}
	if !r.read(binary, fileSet, 0) {
		return descriptors{}, errors.New("the descriptor set can't be parsed")
	}
	if whole {
		return r.set, r.missingImport(binary)
	}
	return r.set, nil
}

// missingImport returns an error if a file of a descriptor set imports a file that is not in the set.
func (r *descriptorReader) missingImport(binary []byte) (err error) {
	each(binary, "file", fileSet, func(b []byte) {
		each(b, "dependency", file, func(imported []byte) {
			if err == nil && !r.files[string(imported)] {
				err = fmt.Errorf("the descriptor set lacks %s, which %s imports", imported, text(b, "name", file))
			}
		})
	})
	return err
}

// descriptorReader reads a descriptor set file by file.
type descriptorReader struct {
	set   descriptors
	files map[string]bool
}

// mostNested is the depth of messages beyond which the C++ parser of protobuf fails.
const mostNested = 100

// read reads an encoded message of type md, and takes the names of the files in it. It returns false if the message
// can't be parsed.
func (r *descriptorReader) read(b []byte, md protoreflect.MessageDescriptor, depth int) bool {
	if depth > mostNested {
		return false
	}
	ok := eachField(b, func(number protowire.Number, kind protowire.Type, value []byte) bool {
		switch fd := md.Fields().ByNumber(number); {
		case fd == nil || kind != protowire.BytesType:
			return true
		case fd.Message() != nil:
			return r.read(value, fd.Message(), depth+1)
		default:
			return !fd.IsList() || fd.Kind() == protoreflect.StringKind || areVarints(value)
		}
	})
	for i := range md.RequiredNumbers().Len() {
		ok = ok && hasField(b, md.RequiredNumbers().Get(i))
	}
	if ok && depth == 1 {
		r.takeFile(b)
	}
	return ok
}

// areVarints reports whether b is a sequence of varints, as packed numbers are.
func areVarints(b []byte) bool {
	for len(b) > 0 {
		_, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return false
		}
		b = b[n:]
	}
	return true
}

// hasField reports whether an encoded message has a field with a number.
func hasField(b []byte, number protowire.Number) bool {
	return !eachField(b, func(is protowire.Number, _ protowire.Type, _ []byte) bool { return is != number })
}

// takeFile adds the names in one file to the set.
func (r *descriptorReader) takeFile(b []byte) {
	name, prefix := text(b, "name", file), text(b, "package", file)
	if prefix != "" {
		prefix += "."
	}
	r.files[name] = true
	each(b, "message_type", file, func(m []byte) {
		fields := make(map[string]bool)
		each(m, "field", message, func(f []byte) { fields[text(f, "name", field)] = true })
		r.set.messages[prefix+text(m, "name", message)] = fields
	})
	each(b, "service", file, func(s []byte) {
		methods := make(map[string]*method)
		each(s, "method", service, func(m []byte) {
			methods[text(m, "name", call)] = &method{text(m, "input_type", call), text(m, "output_type", call)}
		})
		r.set.services[prefix+text(s, "name", service)] = methods
	})
}

// The types of the messages that each and text read by field names.
var (
	fileSet = (&descriptorpb.FileDescriptorSet{}).ProtoReflect().Descriptor()
	file    = (&descriptorpb.FileDescriptorProto{}).ProtoReflect().Descriptor()
	message = (&descriptorpb.DescriptorProto{}).ProtoReflect().Descriptor()
	field   = (&descriptorpb.FieldDescriptorProto{}).ProtoReflect().Descriptor()
	service = (&descriptorpb.ServiceDescriptorProto{}).ProtoReflect().Descriptor()
	call    = (&descriptorpb.MethodDescriptorProto{}).ProtoReflect().Descriptor()
)

// each calls take for each value of a field of strings or messages. b is an encoded message of type md.
func each(b []byte, name protoreflect.Name, md protoreflect.MessageDescriptor, take func([]byte)) {
	number := md.Fields().ByName(name).Number()
	eachField(b, func(is protowire.Number, kind protowire.Type, value []byte) bool {
		if is == number && kind == protowire.BytesType {
			take(value)
		}
		return true
	})
}

// text returns the last value of a string field, or "".
func text(b []byte, name protoreflect.Name, md protoreflect.MessageDescriptor) (last string) {
	each(b, name, md, func(value []byte) { last = string(value) })
	return last
}

// eachField calls take for each field of an encoded message, until take returns false. value is the content of a
// field with BytesType, and nil for other fields. eachField returns true if b is a message and all calls returned
// true.
func eachField(b []byte, take func(number protowire.Number, kind protowire.Type, value []byte) bool) bool {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}
		b = b[n:]
		size := protowire.ConsumeFieldValue(number, kind, b)
		if size < 0 {
			return false
		}
		var value []byte
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(b)
		}
		if !take(number, kind, value) {
			return false
		}
		b = b[size:]
	}
	return true
}
