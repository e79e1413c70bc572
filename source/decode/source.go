package decode

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"sync/atomic"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"xdspub/envoy/envoyapi"
	"xdspub/internal/safefile"
	"xdspub/source/settingsfile"
	"xdspub/source/syntax"
	"xdspub/xds"
	"xdspub/xds/xdstp"
)

// SourceOptions say what a source is, and who gets its resources.
type SourceOptions struct {
	// Envoy is the release that gets the resources; nil means the latest known release.
	Envoy *envoyapi.Version
	// Streams means that clients get the resources by streams alone.
	Streams bool
	// Subscription is the type of Envoy's subscription to the file; nil for a file without a subscription.
	Subscription *xds.Type
	// Bootstrap means that an Envoy starts with the file.
	Bootstrap bool
	// Settings means that the file is a folder's settings file.
	Settings bool
	// Clients are the clients of the file, by the settings files around it; nil for any client.
	Clients *settingsfile.Clients
	// Owner is the folder that owns the file (xds.Resource.Owner).
	Owner string
}

// Source is the text of a file, with the receiver of its resources.
type Source struct {
	syntax.Text
	envoy *envoyapi.Version
	// byEnvoy says that Envoy itself reads the file: by its own rules.
	byEnvoy bool
	streams bool
	// of is the type of Envoy's subscription to the file; otherwise nil.
	of *xds.Type
	// isBootstrap means that the file must be a Bootstrap.
	isBootstrap bool
	// onlyJSON means that another program reads the file, as JSON only.
	onlyJSON   bool
	isSettings bool
	clients    *settingsfile.Clients
	owner      string
	urlNames   atomic.Pointer[bool]
}

// NewSource returns the source with a name, a format and a text.
func NewSource(name string, f syntax.Format, data []byte, o SourceOptions) *Source {
	s := &Source{
		envoy: cmp.Or(o.Envoy, envoyapi.Latest), byEnvoy: o.Subscription != nil || o.Bootstrap, streams: o.Streams,
		of: o.Subscription, isBootstrap: o.Bootstrap, isSettings: o.Settings, clients: o.Clients, owner: o.Owner,
	}
	s.Init(name, f, data, s)
	return s
}

// ReadSource returns NewSource of a file at any place.
func ReadSource(path string, f syntax.Format, o SourceOptions) (*Source, error) {
	data, err := safefile.Read(path, syntax.MaxBytes)
	if err != nil {
		return nil, err
	}
	return NewSource(path, f, data, o), nil
}

// ByEnvoy implements Reader.
func (s *Source) ByEnvoy() bool { return s.byEnvoy }

// OnlyJSON implements Reader.
func (s *Source) OnlyJSON() bool { return s.onlyJSON }

// IsField implements Reader.
func (s *Source) IsField(name string) bool { return xds.IsFieldName(name) }

// HoldsSecrets implements Reader.
func (s *Source) HoldsSecrets(text []byte) bool {
	return bytes.Contains(text, []byte(xds.Secret.Message))
}

// document is a document of a source.
type document struct {
	*syntax.Document
	source *Source
	// isBootstrap says that the document of a source tree is a Bootstrap.
	isBootstrap bool
}

// documents cuts the source into documents.
func (s *Source) documents() (list []*document) {
	for _, d := range s.Text.Documents() {
		list = append(list, &document{Document: d, source: s})
	}
	return list
}

// resolver finds the types that may be in the source.
func (s *Source) resolver() resolver { return resolver{s.envoy.Registry()} }

// holdsURLNames reports whether a source of protobuf's formats may have a name that is a URL, which a
// text may have with escapes.
func (s *Source) holdsURLNames() bool {
	if s.urlNames.Load() == nil {
		holds := bytes.Contains(s.Data(), []byte(xdstp.Scheme)) || s.Format == syntax.TextProto && bytes.IndexByte(s.Data(), '\\') >= 0
		s.urlNames.Store(&holds)
	}
	return *s.urlNames.Load()
}

func (o origin) document() *syntax.Document { return o.source.Kept(o.index) }

// steps are the names and indexes of a path as text, as a JSON pointer has them.
func steps(path xds.Path) []string {
	var tokens []string
	for s := range path.Steps() {
		if s.Name == "" && !s.Key {
			tokens = append(tokens, fmt.Sprint(s.Index))
		} else {
			tokens = append(tokens, s.Name)
		}
	}
	return tokens
}

// MayBeSecret reports whether a key is that of a sensitive field, or of a value in
// a DataSource: of private_kye: {inline_string: …} nothing else tells what it is.
func (s *Source) MayBeSecret(key string) bool {
	switch key {
	case "inline_string", "inlineString", "inline_bytes", "inlineBytes":
		return true
	}
	return s.envoy.Registry().SensitiveFieldName(key)
}

// resolver finds the types that an @type may name. Envoy refuses a URL without a
// host, which protojson would take. The zero resolver finds those of the API.
type resolver struct{ *xds.Registry }

func (r resolver) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	if strings.LastIndexByte(url, '/') < 1 {
		return nil, protoregistry.NotFound
	}
	return r.Registry.FindMessageByURL(url)
}

func (r resolver) json() protojson.UnmarshalOptions {
	return protojson.UnmarshalOptions{Resolver: r, RecursionLimit: syntax.MaxDepth}
}

func (r resolver) text() prototext.UnmarshalOptions {
	return prototext.UnmarshalOptions{Resolver: r, RecursionLimit: syntax.MaxDepth}
}

func (r resolver) binary() proto.UnmarshalOptions {
	return proto.UnmarshalOptions{Resolver: r, RecursionLimit: syntax.MaxDepth}
}

// origin is where a resource stands: the value at base in a document of a source.
type origin struct {
	source *Source
	index  int // of the document
	base   xds.Path
}
