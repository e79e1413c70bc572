package load

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"xdspub/internal/safefile"
	"xdspub/xds"
)

// maxDescriptorSets bounds the files of a Registry, together.
const maxDescriptorSets = 32 << 20

// maxDeclared bounds the depth of nested declarations, as protoc does.
const maxDeclared = 100

// DescriptorSets are files with the user's own types.
type DescriptorSets struct {
	Files []string
	// Tree is the source tree that must hold the files; empty for files at any place.
	Tree string
}

// Read returns the content of the files. The error names the file.
func (d DescriptorSets) Read() (texts [][]byte, err error) {
	read := func(name string, limit int64) ([]byte, error) { return safefile.Read(name, limit) }
	if d.Tree != "" && len(d.Files) > 0 {
		t, err := openTree(d.Tree, nil)
		if err != nil {
			return nil, err
		}
		defer t.close()
		read = func(name string, limit int64) ([]byte, error) {
			read, err := t.read(name, limit)
			return read.data, err
		}
	}
	left := int64(maxDescriptorSets)
	for _, name := range d.Files {
		text, err := read(name, left)
		if _, large := errors.AsType[*safefile.TooLargeError](err); large {
			return nil, fmt.Errorf("read %s: descriptor sets have more than %d bytes together", name, maxDescriptorSets)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		left -= int64(len(text))
		texts = append(texts, text)
	}
	return texts, nil
}

// Registry returns the types in the texts of Read: each is a serialized google.protobuf.FileDescriptorSet, as
// protoc --descriptor_set_out and buf build write it. A file may lack imports that another file has. The error
// names the file. Registry returns nil without texts.
func (d DescriptorSets) Registry(texts [][]byte) (*xds.Registry, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	all := &descriptorpb.FileDescriptorSet{}
	for i, text := range texts {
		set := &descriptorpb.FileDescriptorSet{}
		err := proto.UnmarshalOptions{RecursionLimit: maxDeclared}.Unmarshal(text, set)
		if err != nil || len(set.GetFile()) == 0 || len(set.ProtoReflect().GetUnknown()) > 0 {
			return nil, fmt.Errorf("%s: not a google.protobuf.FileDescriptorSet with files, as protoc --descriptor_set_out and "+
				"buf build -o write it", d.Files[i])
		}
		all.File = append(all.File, set.GetFile()...)
	}
	g, err := xds.NewRegistry(all)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(d.Files, ", "), err)
	}
	return g, nil
}
