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

// Registry has the message types that an Any may hold: the API's types, and the user's own types. A nil *Registry
// has the API's types alone. A Registry is a Resolver for proto, protojson and prototext.
type Registry struct {
	own    *protoregistry.Files
	asOwn  *dynamicpb.Types
	search *Search // caches the shapes of the user's own types, as long as the Registry lives
	// sensitive are the names of the user's own fields that hold secrets.
	sensitive map[string]bool
}

// maxFiles bounds the files of a FileDescriptorSet, since NewRegistry looks up the imports of each file.
const maxFiles = 5000

// NewRegistry returns a Registry of the types in a FileDescriptorSet and of the API's types. If the API has a file
// of the same path, NewRegistry uses the API's file. NewRegistry returns an error if such a file, or a name, has
// another meaning in the API, if the set lacks an imported file, or if the set breaks the rules of protobuf.
func NewRegistry(set *descriptorpb.FileDescriptorSet) (*Registry, error) {
	if len(set.GetFile()) > maxFiles {
		return nil, fmt.Errorf("the descriptor set has more than %d files", maxFiles)
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
	given map[string]*descriptorpb.FileDescriptorProto // the files that the API does not have, by path
	own   *protoregistry.Files
}

// give adds a file to given. If the API has the file, give only checks that both files have the same meaning.
func (b *registryBuilder) give(f *descriptorpb.FileDescriptorProto) error {
	if known, err := protoregistry.GlobalFiles.FindFileByPath(f.GetName()); err == nil {
		return fits(protodesc.ToFileDescriptorProto(known), f)
	}
	f = proto.CloneOf(f)
	f.SourceCodeInfo = nil // the largest part, of comments
	if other := b.given[f.GetName()]; other != nil && !proto.Equal(other, f) {
		return fmt.Errorf("the descriptor set has %s twice, with different content: leave one out", f.GetName())
	}
	b.given[f.GetName()] = f
	return nil
}

// add makes the descriptors of a file and of its imports. importers is the chain of imports that leads to the file.
func (b *registryBuilder) add(path string, importers []string) error {
	if _, err := b.FindFileByPath(path); err == nil {
		return nil
	}
	f := b.given[path]
	switch {
	case f == nil:
		return fmt.Errorf("%s imports %s, which is neither in the descriptor set nor built in: make the set with --include_imports",
			importers[len(importers)-1], path)
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
		return fmt.Errorf("%s defines %s, which is built in: import the built-in file with this name instead", path, twice)
	}
	return withoutPrefix(b.own.RegisterFile(fd))
}

// maxImports is the largest length of a chain of imports.
const maxImports = 200

// withoutPrefix returns an error of the protobuf library as a part of a sentence: without "proto: ", and with a
// space where some builds of the library write a no-break space. withoutPrefix returns nil for nil.
func withoutPrefix(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: "))
}

// builtIn returns the first message, enum or extension that both a file and the API declare; empty for none.
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

// FindFileByPath implements protodesc.Resolver. The API's files come first.
func (b *registryBuilder) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	if fd, err := protoregistry.GlobalFiles.FindFileByPath(path); err == nil {
		return fd, nil
	}
	return b.own.FindFileByPath(path)
}

// FindDescriptorByName implements protodesc.Resolver. The API's declarations come first.
func (b *registryBuilder) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	if d, err := protoregistry.GlobalFiles.FindDescriptorByName(name); err == nil {
		return d, nil
	}
	return b.own.FindDescriptorByName(name)
}

// Own returns the names of the user's own messages, without messages nested in messages, in no order.
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

// Knows reports whether the Registry has the message of a type URL.
func (g *Registry) Knows(url string) bool {
	_, err := g.FindMessageByName(NameInURL(url))
	return err == nil
}

// FindMessageByName finds a message. The API's message comes first.
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

// maxNested bounds the nesting of messages in a payload of the user's own types. Envoy has the same bound.
const maxNested = 100

// unpack returns the message in an Any. The API's messages have their generated Go types, also inside a message of
// the user's own types.
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

// ofStruct returns the message of type url that a Struct stands for, as Envoy converts the Struct. A nil value is
// an empty message.
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

// generate replaces the API's messages inside a message of the user's own types: the protobuf library has made
// dynamic messages of them, and rules look for their generated Go types.
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

// Walk is the function Walk, but also enters payloads of the user's own types.
func (g *Registry) Walk(m proto.Message, visit func(*Node)) {
	w := walker{registry: g, visit: func(n *Node) bool { visit(n); return false }}
	w.walk(&Node{Message: m, shape: all.shapeOf(m.ProtoReflect().Descriptor())})
}

// searchFor returns the Search that caches the shape of a payload's type: around, or, for one of the user's own
// types, the Registry's Search, which does not outlive the Registry.
func (g *Registry) searchFor(md protoreflect.MessageDescriptor, around *Search) *Search {
	if g.Owns(md.FullName()) {
		return g.search
	}
	return around
}
