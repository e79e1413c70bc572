package xds

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// Registry has the message types that an Any may hold: those of the API, and the user's own. The nil
// *Registry has those of the API alone. It is a Resolver for proto, protojson and prototext.
type Registry struct {
	own    *protoregistry.Files
	asOwn  *dynamicpb.Types
	search *Search // of shapes, which end with the Registry
	// sensitive are the names of the user's own fields that hold secrets.
	sensitive map[string]bool
}

// maxFiles bounds the files of a FileDescriptorSet: what they import is looked up for each.
const maxFiles = 5000

// NewRegistry returns the types of a FileDescriptorSet beside the API's types. If the API has a file of the
// same path, the API's file counts. NewRegistry returns an error if such a file, or a name, has another
// meaning in the API, or if the set lacks an imported file.
func NewRegistry(set *descriptorpb.FileDescriptorSet) (*Registry, error) {
	if len(set.GetFile()) > maxFiles {
		return nil, fmt.Errorf("it has more than %d files", maxFiles)
	}
	b := registryBuilder{given: make(map[string]*descriptorpb.FileDescriptorProto), own: &protoregistry.Files{}}
	for _, f := range set.GetFile() {
		if err := b.give(f); err != nil {
			return nil, err
		}
	}
	for _, f := range set.GetFile() {
		if err := b.add(f.GetName(), nil); err != nil {
			return nil, err
		}
	}
	g := &Registry{own: b.own, asOwn: dynamicpb.NewTypes(b.own), search: &Search{whole: true}, sensitive: make(map[string]bool)}
	b.own.RangeFiles(func(fd protoreflect.FileDescriptor) bool {
		ownSensitiveNames(fd.Messages(), g.sensitive)
		return true
	})
	return g, nil
}

// registryBuilder makes descriptors of files, imported files first.
type registryBuilder struct {
	given map[string]*descriptorpb.FileDescriptorProto // that the API does not have
	own   *protoregistry.Files
}

// give takes a file, once. If the API has the file, give checks that both files have the same meaning.
func (b *registryBuilder) give(f *descriptorpb.FileDescriptorProto) error {
	if known, err := protoregistry.GlobalFiles.FindFileByPath(f.GetName()); err == nil {
		return fits(protodesc.ToFileDescriptorProto(known), f)
	}
	f = proto.CloneOf(f)
	f.SourceCodeInfo = nil // the largest part, of comments
	if other := b.given[f.GetName()]; other != nil && !proto.Equal(other, f) {
		return fmt.Errorf("it has %s twice, with different content", f.GetName())
	}
	b.given[f.GetName()] = f
	return nil
}

// add makes the descriptor of a file and of its imports. importers are the files on the way to it.
func (b *registryBuilder) add(path string, importers []string) error {
	if _, err := b.FindFileByPath(path); err == nil {
		return nil
	}
	f := b.given[path]
	switch {
	case f == nil:
		return fmt.Errorf("%s imports %s, which is not in it and not built in: make it with --include_imports", importers[len(importers)-1], path)
	case slices.Contains(importers, path):
		return fmt.Errorf("%s imports itself", path)
	case len(importers) > maxImports:
		return fmt.Errorf("%s is imported by a chain of more than %d files", path, maxImports)
	}
	for _, imported := range f.GetDependency() {
		if err := b.add(imported, append(importers, path)); err != nil {
			return err
		}
	}
	fd, err := protodesc.NewFile(f, b)
	if err != nil {
		return fmt.Errorf("%s: %w", path, withoutPrefix(err))
	}
	if twice := builtIn(fd); twice != "" {
		return fmt.Errorf("%s defines %s, which is built in: import the file of that", path, twice)
	}
	return withoutPrefix(b.own.RegisterFile(fd))
}

// maxImports is the largest length of a chain of imports.
const maxImports = 200

// withoutPrefix is an error of the library as a part of a sentence. The space in it differs from build
// to build.
func withoutPrefix(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: "))
}

// builtIn returns the first name that both a file and the API declare; empty for none.
func builtIn(fd protoreflect.FileDescriptor) protoreflect.FullName {
	var names []protoreflect.FullName
	for i := range fd.Messages().Len() {
		names = append(names, fd.Messages().Get(i).FullName())
	}
	for i := range fd.Enums().Len() {
		names = append(names, fd.Enums().Get(i).FullName())
	}
	for i := range fd.Extensions().Len() {
		names = append(names, fd.Extensions().Get(i).FullName())
	}
	for _, name := range names {
		if _, err := protoregistry.GlobalFiles.FindDescriptorByName(name); err == nil {
			return name
		}
	}
	return ""
}

// FindFileByPath finds a file that protodesc asks for.
func (b *registryBuilder) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	if fd, err := protoregistry.GlobalFiles.FindFileByPath(path); err == nil {
		return fd, nil
	}
	return b.own.FindFileByPath(path)
}

// FindDescriptorByName finds a declaration that protodesc asks for.
func (b *registryBuilder) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	if d, err := protoregistry.GlobalFiles.FindDescriptorByName(name); err == nil {
		return d, nil
	}
	return b.own.FindDescriptorByName(name)
}

// Own returns the names of the user's own messages, in no order. Messages in messages are left out.
func (g *Registry) Own() (names []protoreflect.FullName) {
	if g == nil {
		return nil
	}
	g.own.RangeFiles(func(fd protoreflect.FileDescriptor) bool {
		for i := range fd.Messages().Len() {
			names = append(names, fd.Messages().Get(i).FullName())
		}
		return true
	})
	return names
}

// Owns reports whether a message is one of the user's own.
func (g *Registry) Owns(name protoreflect.FullName) bool {
	if g == nil {
		return false
	}
	_, err := g.asOwn.FindMessageByName(name)
	return err == nil
}

// Knows reports whether the message of a type URL exists.
func (g *Registry) Knows(url string) bool {
	_, err := g.FindMessageByName(NameInURL(url))
	return err == nil
}

// FindMessageByName finds a message, that of the API first.
func (g *Registry) FindMessageByName(name protoreflect.FullName) (protoreflect.MessageType, error) {
	mt, err := protoregistry.GlobalTypes.FindMessageByName(name)
	if err != nil && g != nil {
		return g.asOwn.FindMessageByName(name)
	}
	return mt, err
}

// FindMessageByURL finds the message that a type URL names.
func (g *Registry) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	mt, err := protoregistry.GlobalTypes.FindMessageByURL(url)
	if err != nil && g != nil {
		return g.asOwn.FindMessageByURL(url)
	}
	return mt, err
}

// FindExtensionByName finds an extension field of proto2.
func (g *Registry) FindExtensionByName(name protoreflect.FullName) (protoreflect.ExtensionType, error) {
	xt, err := protoregistry.GlobalTypes.FindExtensionByName(name)
	if err != nil && g != nil {
		return g.asOwn.FindExtensionByName(name)
	}
	return xt, err
}

// FindExtensionByNumber finds an extension field of proto2.
func (g *Registry) FindExtensionByNumber(message protoreflect.FullName, n protoreflect.FieldNumber) (protoreflect.ExtensionType, error) {
	xt, err := protoregistry.GlobalTypes.FindExtensionByNumber(message, n)
	if err != nil && g != nil {
		return g.asOwn.FindExtensionByNumber(message, n)
	}
	return xt, err
}

// New returns an empty message of a type: its generated Go type, if one exists.
func New(md protoreflect.MessageDescriptor) proto.Message {
	if mt, err := protoregistry.GlobalTypes.FindMessageByName(md.FullName()); err == nil {
		return mt.New().Interface()
	}
	return dynamicpb.NewMessage(md)
}

// maxNested bounds how deeply messages of the user's own types are nested, as Envoy does.
const maxNested = 100

// unpack returns the message in an Any. Messages of the API are of their generated Go types, also in
// one of the user's own.
func (g *Registry) unpack(a *anypb.Any) (proto.Message, error) {
	if g == nil || !g.Owns(NameInURL(a.GetTypeUrl())) {
		return a.UnmarshalNew()
	}
	mt, err := g.FindMessageByURL(a.GetTypeUrl())
	if err != nil {
		return nil, err
	}
	m := mt.New()
	if err := (proto.UnmarshalOptions{Resolver: g, RecursionLimit: maxNested}).Unmarshal(a.GetValue(), m.Interface()); err != nil {
		return nil, err
	}
	return m.Interface(), generate(m)
}

// ofStruct returns the message that a TypedStruct stands for, as Envoy converts it.
func (g *Registry) ofStruct(url string, value *structpb.Struct) (proto.Message, error) {
	mt, err := g.FindMessageByURL(url)
	if err != nil {
		return nil, fmt.Errorf("unknown type %q", url)
	}
	m := mt.New()
	if value == nil {
		return m.Interface(), nil
	}
	b, err := protojson.Marshal(value)
	if err != nil {
		return nil, err
	}
	if err := (protojson.UnmarshalOptions{Resolver: g}).Unmarshal(b, m.Interface()); err != nil {
		return nil, err
	}
	if g.Owns(mt.Descriptor().FullName()) {
		err = generate(m)
	}
	return m.Interface(), err
}

// generate gives the messages of the API in one of the user's own their generated Go types, by which
// rules know them. The library makes all of them dynamic.
func generate(m protoreflect.Message) (err error) {
	with := func(v protoreflect.Value, set func(protoreflect.Value)) {
		is := New(v.Message().Descriptor())
		if _, dynamic := is.(*dynamicpb.Message); dynamic {
			err = errors.Join(err, generate(v.Message()))
			return
		}
		b, failed := proto.MarshalOptions{AllowPartial: true}.Marshal(v.Message().Interface())
		err = errors.Join(err, failed, proto.Unmarshal(b, is))
		set(protoreflect.ValueOfMessage(is.ProtoReflect()))
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Message() == nil:
		case fd.IsMap() && fd.MapValue().Message() != nil:
			v.Map().Range(func(k protoreflect.MapKey, value protoreflect.Value) bool {
				with(value, func(is protoreflect.Value) { v.Map().Set(k, is) })
				return err == nil
			})
		case fd.IsMap():
		case fd.IsList():
			for i := range v.List().Len() {
				with(v.List().Get(i), func(is protoreflect.Value) { v.List().Set(i, is) })
			}
		default:
			with(v, func(is protoreflect.Value) { m.Set(fd, is) })
		}
		return err == nil
	})
	return err
}

// Walk calls visit for m and every message below it, as Walk does, and for the user's own, too.
func (g *Registry) Walk(m proto.Message, visit func(*Node)) {
	w := walker{registry: g, visit: func(n *Node) bool { visit(n); return false }}
	w.walk(&Node{Message: m, shape: all.shapeOf(m.ProtoReflect().Descriptor())})
}

// searchFor returns who knows the shapes of a payload's type: those of the user's own types are not
// kept longer than these.
func (g *Registry) searchFor(md protoreflect.MessageDescriptor, around *Search) *Search {
	if g.Owns(md.FullName()) {
		return g.search
	}
	return around
}
