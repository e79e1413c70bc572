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

// maxDeclared bounds how deeply declarations are nested in each other, as protoc does.
const maxDeclared = 100

// DescriptorSets are files with the user's own types.
type DescriptorSets struct {
	Files []string
	// Tree is the source tree that the files are to be in; empty where they may be anywhere.
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

// Registry returns the types of the files, whose content Read has returned: a serialized
// google.protobuf.FileDescriptorSet each, as protoc --descriptor_set_out and buf build write it. What
// one of them lacks another may have. The error names the file. It returns nil where there are none.
func (d DescriptorSets) Registry(texts [][]byte) (*xds.Registry, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	all := &descriptorpb.FileDescriptorSet{}
	for i, text := range texts {
		set := &descriptorpb.FileDescriptorSet{}
		err := proto.UnmarshalOptions{RecursionLimit: maxDeclared}.Unmarshal(text, set)
		if err != nil || len(set.GetFile()) == 0 || len(set.ProtoReflect().GetUnknown()) > 0 {
			return nil, fmt.Errorf("%s: not a google.protobuf.FileDescriptorSet with files, as protoc --descriptor_set_out and buf build -o write it", d.Files[i])
		}
		all.File = append(all.File, set.GetFile()...)
	}
	g, err := xds.NewRegistry(all)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(d.Files, ", "), err)
	}
	return g, nil
}
