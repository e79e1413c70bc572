package load

import (
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/envoy/envoyapi"
	"xdspub/source/decode"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// Input is a document outside of any source tree, such as standard input.
type Input struct {
	// Name is the file's name in findings.
	Name string
	// Format is one of Formats.
	Format string
	Data   []byte
	// Envoy is the release that gets the resources; nil means the latest known release.
	Envoy *envoyapi.Version
	// Streams is Options.Streams.
	Streams bool
}

func (in Input) source(bootstrap bool) *decode.Source {
	return decode.NewSource(in.Name, syntax.FormatNamed(in.Format), in.Data, decode.SourceOptions{Envoy: in.Envoy, Streams: in.Streams, Bootstrap: bootstrap})
}

// Open reads a file as an Input with the format of its suffix. An unreadable suffix is an error.
func Open(path string) (Input, error) {
	f := syntax.FormatOf(path)
	if f == syntax.Other {
		return Input{}, noFormat(path)
	}
	s, err := decode.ReadSource(path, f, decode.SourceOptions{})
	if err != nil {
		return Input{}, err
	}
	return Input{Name: path, Format: f.Row().Name, Data: s.Data()}, nil
}

// Parse decodes an Input like a file of a source tree. It looks in the working directory for
// files that the Input names by a relative path.
func Parse(in Input) *Result {
	t, err := openTree(".", nil)
	if err != nil { // unreadable path
		return AsWritten(in)
	}
	defer t.close()
	_, result := parse(in.source(false), t)
	return result
}

// AsWritten is Parse without reading the files that the Input names.
func AsWritten(in Input) *Result {
	_, result := parse(in.source(false), nil)
	return result
}

// parse decodes a source. named has the files that resources name; nil leaves these files alone.
func parse(s *decode.Source, named decode.Files) (*decode.File, *Result) {
	f := s.Decode(named)
	result := &Result{
		Diagnostics: f.Diagnostics().Sort(), Partial: f.Partial, SaysNone: f.SaysNone, Bytes: int64(s.Size()),
		files: []*file{{File: f}}, count: 1,
	}
	if len(f.Ignores) > 0 {
		result.ignoring = result.files
	}
	for _, i := range f.Inlined {
		result.Inlined = append(result.Inlined, i.Path)
	}
	return f, result
}

// Response decodes an Input to one DiscoveryResponse as written: Resource wrappers stay, and named files are
// not read. The resources of several documents become one response. The response is nil if the Result has
// errors.
func Response(in Input) (*discoveryv3.DiscoveryResponse, *Result) {
	f, result := parse(in.source(false), nil)
	if result.Diagnostics.HasErrors() {
		return nil, result
	}
	out := &discoveryv3.DiscoveryResponse{}
	if len(f.Envelopes) > 0 {
		out = f.Envelopes[0]
	}
	for _, r := range f.Resources {
		m := r.Message()
		if r.Meta != nil {
			w := proto.CloneOf(r.Meta)
			w.Resource = pack(m)
			m = w
		}
		out.Resources = append(out.Resources, pack(m))
	}
	return out, result
}

// pack returns m in an Any. m was decoded before, so it can also be encoded.
func pack(m proto.Message) *anypb.Any {
	value, _ := xds.Marshal(m)
	return &anypb.Any{TypeUrl: xds.URLPrefix + string(m.ProtoReflect().Descriptor().FullName()), Value: value}
}
