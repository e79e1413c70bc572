package load

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"sync/atomic"

	"xdspub/envoy/envoyapi"
	"xdspub/source/settingsfile"
	"xdspub/source/syntax"
	"xdspub/xds"
	"xdspub/xds/xdstp"
)

// source is the text of a file, with the receiver of its resources.
type source struct {
	syntax.Text
	envoy *envoyapi.Version
	// byEnvoy says that Envoy itself reads the file: by its own rules.
	byEnvoy bool
	// streams is Options.Streams.
	streams bool
	// of is the type of Envoy's subscription to the file; otherwise nil.
	of *xds.Type
	// isBootstrap means that the file must be a Bootstrap.
	isBootstrap bool
	// onlyJSON means that another program reads the file, as JSON only.
	onlyJSON bool
	// isSettings means that the file is a folder's settings file.
	isSettings bool
	// clients are the clients of the file, by the settings files around it; nil for any client.
	clients  *settingsfile.Clients
	urlNames atomic.Pointer[bool]
}

func newSource(name string, f syntax.Format, data []byte) *source {
	s := &source{envoy: envoyapi.Latest}
	s.Init(name, f, data, s)
	return s
}

// ByEnvoy implements Reader.
func (s *source) ByEnvoy() bool { return s.byEnvoy }

// OnlyJSON implements Reader.
func (s *source) OnlyJSON() bool { return s.onlyJSON }

// IsField implements Reader.
func (s *source) IsField(name string) bool { return xds.IsFieldName(name) }

// HoldsSecrets implements Reader.
func (s *source) HoldsSecrets(text []byte) bool {
	return bytes.Contains(text, []byte(xds.Secret.Message))
}

// document is a document of a source.
type document struct {
	*syntax.Document
	source *source
	// isBootstrap says that the document of a source tree is a Bootstrap.
	isBootstrap bool
}

// documents cuts the source into documents.
func (s *source) documents() (list []*document) {
	for _, d := range s.Text.Documents() {
		list = append(list, &document{Document: d, source: s})
	}
	return list
}

// forEnvoy sets the release that gets the resources, unless v is nil.
func (s *source) forEnvoy(v *envoyapi.Version) *source {
	s.envoy = cmp.Or(v, s.envoy)
	return s
}

// resolver finds the types that may be in the source.
func (s *source) resolver() resolver { return resolver{s.envoy.Registry()} }

// holdsURLNames reports whether a source of protobuf's formats may have a name that is a URL, which a
// text may have with escapes.
func (s *source) holdsURLNames() bool {
	if s.urlNames.Load() == nil {
		holds := bytes.Contains(s.Data(), []byte(xdstp.Scheme)) || s.Format == syntax.TextProto && bytes.IndexByte(s.Data(), '\\') >= 0
		s.urlNames.Store(&holds)
	}
	return *s.urlNames.Load()
}

// origin is where a resource stands: the value at base in a document of a source.
type origin struct {
	source *source
	index  int // of the document
	base   xds.Path
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
func (s *source) MayBeSecret(key string) bool {
	switch key {
	case "inline_string", "inlineString", "inline_bytes", "inlineBytes":
		return true
	}
	return s.envoy.Registry().SensitiveFieldName(key)
}

// decode reads the whole source. Named files are read in t.
func (s *source) decode(t *tree) *file {
	f := newFile(s)
	d := decoder{file: f, tree: t}
	if s.Format == syntax.Other {
		if looksLikeXDS.Match(s.Data()) {
			d.report(s.Finding(codeIgnoredFile, syntax.FileRange(s.Name),
				"the file looks like xDS resources, but xdspub does not read this suffix",
				"rename it to .yaml, .json, .txtpb or .pb, or list it under ignore: in xdspub.yaml"))
		}
		return f
	}
	if s.Format != syntax.Binary && (d.tooMany() || d.invalidUTF8()) {
		f.partial, f.clientsUnknown = true, s.isSettings
		return f
	}
	if s.isSettings {
		var ok bool
		f.when, ok = settingsfile.ReadFolder(&s.Text, t.isRoot(s.Name), d.report)
		f.clientsUnknown = !ok
		if f.when != nil {
			f.ignores = s.ignoreComments(nil)
		}
		return f
	}
	switch s.Format {
	case syntax.YAML:
		d.yamlSource()
	case syntax.JSON:
		d.jsonSource()
	case syntax.TextProto:
		d.textSource()
	case syntax.Binary:
		d.binarySource()
	}
	f.ignores = s.ignoreComments(f.resources)
	if !d.any && f.findings.Len() == 0 {
		at := s.Point(0)
		if s.Format == syntax.Binary {
			at = syntax.FileRange(s.Name)
		}
		f.partial = true
		message, help := s.emptiness()
		d.report(s.Finding(codeEmptyFile, at, message, help))
	}
	return f
}

// emptiness says what comes of a source that holds no document.
func (s *source) emptiness() (message, help string) {
	message = "the file has no content"
	switch {
	case s.isBootstrap:
		return message + ": " + s.refusal(), "write the bootstrap into it"
	case s.byEnvoy && (s.Format == syntax.TextProto || s.Format == syntax.Binary):
		return message + ": " + s.of.WithoutAny(), responseHelp
	case s.byEnvoy:
		return message + ": " + s.refusal(), responseHelp
	}
	return message, "write a resource into it, or delete it"
}

var looksLikeXDS = regexp.MustCompile(`(?m)^\s*(?:- )?["']?@type["']?\s*:\s*["']?type\.googleapis\.com/envoy\.`)

// invalidUTF8 reports the first byte of the source that is not UTF-8.
func (d *decoder) invalidUTF8() bool {
	f, is := d.file.source.NotUTF8()
	if is {
		d.report(f)
	}
	return is
}
