package render

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"xdspub/diag"
	"xdspub/xds"
)

// Format is an encoding of the published files. A Format holds all differences between formats; a new format
// is one file with one Format.
type Format struct {
	// Name is the format's name and the suffix of its files: by the suffix, and
	// by nothing else, Envoy chooses the parser.
	Name string

	// message encodes a message that stands alone. g has the types in the message.
	message func(g *xds.Registry, m proto.Message) ([]byte, error)
	// resource encodes a message for use inside a response, so that an unchanged resource is never encoded
	// again. canonical is the message's xds.Marshal.
	resource func(g *xds.Registry, m proto.Message, canonical []byte) ([]byte, error)
	// response puts resources, all of one type and written by resource, into a
	// DiscoveryResponse.
	response func(version, typeURL string, resources [][]byte) ([]byte, error)
	// changes finds values that Envoy would read in another way from this format; nil for a format that
	// carries every value.
	changes func(*xds.Resource) diag.List
}

// Formats are all formats, the default first.
var Formats = []*Format{JSON, YAML, Binary, Text}

// FormatNamed returns the format of that name, or nil.
func FormatNamed(name string) *Format {
	for _, f := range Formats {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Convert writes a DiscoveryResponse in this format. g has the types in the response, resources are its
// resources. If the format can't carry a resource, Convert returns findings about the resource and no output.
// Equal responses give equal bytes, from run to run and from build to build.
func (f *Format) Convert(g *xds.Registry, response *discoveryv3.DiscoveryResponse, resources []*xds.Resource) ([]byte, diag.List) {
	var list diag.List
	if f.changes != nil {
		for _, r := range resources {
			list = append(list, f.changes(r)...)
		}
	}
	if list.HasErrors() {
		return nil, list.Sort()
	}
	data, err := f.message(g, response)
	if err != nil {
		return nil, diag.List{{Code: codeUnencodable.Name, Message: fmt.Sprintf("can't be written as %s: %v", f.Name, err)}}
	}
	return data, list
}

// Path returns the path of the file of a resource, below the output directory. name
// is ignored for the types that share one file.
func (f *Format) Path(t *xds.Type, name string) string {
	return path.Join(folder(t, name), strings.ToLower(t.API)+"."+f.Name)
}

// readsBack checks a resource against what its writing says. It is for formats that say nothing of
// damage: of a binary file Envoy applies the readable prefix and counts a success.
func readsBack(m proto.Message, canonical, written []byte, unmarshal func([]byte, proto.Message) error) error {
	again := m.ProtoReflect().New().Interface()
	if err := unmarshal(written, again); err != nil {
		return fmt.Errorf("it can't be read back: %w", err)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(again)
	if err == nil && !bytes.Equal(b, canonical) {
		b, err = xds.Marshal(again) // of a type URL with another host
	}
	if err == nil && !bytes.Equal(b, canonical) {
		err = errors.New("it reads back as something else")
	}
	return err
}

// sizeOf is about how long a response of these resources gets.
func sizeOf(resources [][]byte) int {
	size := 256
	for _, r := range resources {
		size += len(r) + 80
	}
	return size
}
