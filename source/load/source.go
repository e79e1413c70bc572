package load

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/xds"
	"xdspub/xds/xdstp"
)

// source is the text of one file.
type source struct {
	name   string
	format format
	marked bool              // the text has a byte order mark
	envoy  *envoyapi.Version // that is to take what is in it
	// byEnvoy says that Envoy itself reads the file: by its own rules.
	byEnvoy bool
	// streams is Options.Streams.
	streams bool
	// of is what Envoy subscribes to the file for; nil in all others.
	of *xds.Type
	// isBootstrap says that it can be nothing but a Bootstrap.
	isBootstrap bool
	// onlyJSON says that another program reads the file, and no format but JSON.
	onlyJSON bool
	// isSettings says that it is the settings file of a folder.
	isSettings bool
	// clients are those that the file is for, by the settings files around it; nil for any.
	clients *clients

	holder holder
}

// content is the text of a source, without its byte order mark, and what was made of it.
type content struct {
	data      []byte
	documents []*document // that resources were read from
	asked     lazy[sourceViews]
}

// sourceViews are made when a finding first asks for them. Most sources have none.
type sourceViews struct {
	places    func() places
	text      func() string
	sensitive func() bool
	urlNames  func() bool
}

// lazy is a value that is made when it is first asked for. Without one it is small.
type lazy[T any] struct{ made atomic.Pointer[T] }

// get returns the value that make made first. What it makes is cheap: it may be made twice.
func (l *lazy[T]) get(make func() *T) *T {
	if l.made.Load() == nil {
		l.made.CompareAndSwap(nil, make())
	}
	return l.made.Load()
}

func newSource(name string, f format, data []byte) *source {
	marked := false
	if f != formatBinary {
		data, marked = bytes.CutPrefix(data, []byte("\ufeff"))
	}
	s := &source{envoy: envoyapi.Latest, name: name, format: f, marked: marked}
	if f == formatSettings {
		s.format, s.isSettings = formatYAML, true
	}
	s.holder.held.Store(&content{data: data})
	return s
}

// forEnvoy says which version is to take what is in the source; nil leaves it as it is.
func (s *source) forEnvoy(v *envoyapi.Version) *source {
	s.envoy = cmp.Or(v, s.envoy)
	return s
}

// resolver finds the types that may be in the source.
func (s *source) resolver() resolver { return resolver{s.envoy.Registry()} }

func (s *source) views() *sourceViews {
	c := s.content()
	return c.asked.get(func() *sourceViews {
		return &sourceViews{
			places:    sync.OnceValue(func() places { return placesOf(c.data) }),
			text:      sync.OnceValue(func() string { return string(c.data) }),
			sensitive: sync.OnceValue(func() bool { return s.sensitiveText(c.data) }),
			urlNames: sync.OnceValue(func() bool {
				return bytes.Contains(c.data, []byte(xdstp.Scheme)) || s.format == formatText && bytes.IndexByte(c.data, '\\') >= 0
			}),
		}
	})
}

func (s *source) data() []byte    { return s.content().data }
func (s *source) places() places  { return s.views().places() }
func (s *source) text() string    { return s.views().text() }
func (s *source) sensitive() bool { return s.views().sensitive() }

// holdsURLNames reports whether a source of protobuf's formats may have a name that is a URL, which a
// text may have with escapes.
func (s *source) holdsURLNames() bool { return s.views().urlNames() }

// document is one document of a source: a whole JSON file, or one part of a
// multi-document YAML file.
type document struct {
	source *source
	text   []byte
	offset int // of text in the source
	index  int // of the document in the source
	// isBootstrap says that the document of a source tree is a Bootstrap.
	isBootstrap bool
	asked       lazy[documentViews]
}

// documentViews are made when they are first asked for. Most documents have none.
type documentViews struct {
	yaml func() *yaml.Node
	// beside is yaml without the elements of lists.
	beside func() *yaml.Node
	tree   func() *textTree
	lines  func() []int // where YAML sees lines of text begin
	odd    func() bool  // may hold numbers that Envoy takes for text
	lists  sync.Map     // long YAML lists that are parsed in pieces, by their paths
	keys   sync.Map     // of long YAML mappings: from the node to a func that makes its index
	long   sync.Map     // long JSON values: from the offset to a func that makes its children
}

func (s *source) document(text []byte, offset int) *document {
	return &document{source: s, text: text, offset: offset}
}

// whole is the content of the source as its only document.
func (s *source) whole(c *content) *document {
	d := s.document(c.data, 0)
	c.documents = []*document{d}
	return d
}

func (d *document) views() *documentViews {
	return d.asked.get(func() *documentViews {
		return &documentViews{
			yaml:   sync.OnceValue(func() *yaml.Node { return parseYAML(d.text) }),
			beside: sync.OnceValue(func() *yaml.Node { return d.parseBeside() }),
			tree:   sync.OnceValue(func() *textTree { return parseText(d.text) }),
			odd:    sync.OnceValue(func() bool { return holdsOddNumber(d.text) }),
			lines:  sync.OnceValue(func() []int { return yamlLines(d.text) }),
		}
	})
}

func (d *document) yaml() *yaml.Node { return d.views().yaml() }
func (d *document) tree() *textTree  { return d.views().tree() }
func (d *document) lines() []int     { return d.views().lines() }
func (d *document) odd() bool        { return d.views().odd() }

// origin is where a resource stands: the value at base in a document of a source.
type origin struct {
	source *source
	index  int // of the document
	base   xds.Path
}

func (o origin) document() *document { return o.source.content().documents[o.index] }

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

// line is line n of the source, from 1.
func (s *source) line(n int) (string, bool) {
	starts := s.places().lines
	if n < 1 || n > len(starts) {
		return "", false
	}
	text := s.text()[starts[n-1]:]
	if n < len(starts) {
		text = s.text()[starts[n-1] : starts[n]-1]
	}
	return strings.TrimSuffix(text, "\r"), true
}

// longLine is the length from which on a line is not searched for keys again.
const longLine = 4 << 10

// shown is line n of the source, if nothing in it may be secret. A finding can
// stand beside a key that is not its own: flow style and minified JSON put
// several resources on one line.
func (s *source) shown(n int) (string, bool) {
	text, ok := s.line(n)
	if ok && s.sensitive() && (len(text) > longLine || s.sensitiveText([]byte(text))) {
		return "", false
	}
	return text, ok
}

// at is the position of a byte offset into the source.
func (s *source) at(offset int) diag.Position {
	p, data := s.places(), s.data()
	offset = min(max(offset, 0), len(data))
	line := sort.SearchInts(p.lines, offset+1) - 1
	return diag.Position{
		File:   s.name,
		Line:   line + 1,
		Column: p.runesTo(data, offset) - p.runesTo(data, p.lines[line]) + 1,
	}
}

// finding is an error at a place that no resource is known for.
func (s *source) finding(code diag.Code, at diag.Range, message, help string) diag.Diagnostic {
	return diag.Diagnostic{Code: code.Name, Severity: code.Severity, Position: at.Position, End: at.End, Message: message, Help: help, Sensitive: s.sensitive()}
}

// sensitiveText reports whether a text has a key whose value may be secret. Where
// the text can't be parsed nobody can tell which lines belong to that key, so
// none is printed.
func (s *source) sensitiveText(text []byte) bool {
	if bytes.Contains(text, []byte(xds.Secret.Message)) {
		return true
	}
	for {
		i := bytes.IndexByte(text, ':')
		if i < 0 {
			return false
		}
		key := bytes.TrimRight(text[:i], " \t\r\n\"'")
		key = key[bytes.LastIndexFunc(key, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })+1:]
		if s.mayBeSecret(string(key)) {
			return true
		}
		text = text[i+1:]
	}
}

// keyIn is a key for a message. Beside secrets, one that is no name of the API may
// be a value that lost its quotes.
func (s *source) keyIn(name string) string {
	if s.sensitive() && !xds.IsFieldName(name) {
		return "a key"
	}
	return fmt.Sprintf("key %q", name)
}

// mayBeSecret reports whether a key is that of a sensitive field, or of a value in
// a DataSource: of private_kye: {inline_string: …} nothing else tells what it is.
func (s *source) mayBeSecret(key string) bool {
	switch key {
	case "inline_string", "inlineString", "inline_bytes", "inlineBytes":
		return true
	}
	return s.envoy.Registry().SensitiveFieldName(key)
}

// decode reads all that the source holds. The files that it names are read in t.
func (s *source) decode(t *tree) *file {
	f := newFile(s)
	d := decoder{file: f, tree: t}
	if s.format == formatOther {
		if looksLikeXDS.Match(s.data()) {
			d.report(s.finding(codeIgnoredFile, fileRange(s.name),
				"the file looks like xDS resources, but xdspub does not read this suffix",
				"rename it to .yaml, .json, .txtpb or .pb, or list it under ignore: in xdspub.yaml"))
		}
		return f
	}
	if s.format != formatBinary && (d.tooMany() || d.invalidUTF8()) {
		f.partial, f.clientsUnknown = true, s.isSettings
		return f
	}
	if s.isSettings {
		d.settings()
		return f
	}
	switch s.format {
	case formatYAML:
		d.yamlSource()
	case formatJSON:
		d.jsonSource()
	case formatText:
		d.textSource()
	case formatBinary:
		d.binarySource()
	}
	f.ignores = s.ignoreComments(f.resources)
	if !d.any && f.findings.Len() == 0 {
		at := s.point(0)
		if s.format == formatBinary {
			at = fileRange(s.name)
		}
		f.partial = true
		message, help := s.emptiness()
		d.report(s.finding(codeEmptyFile, at, message, help))
	}
	return f
}

// emptiness says what comes of a source that holds no document.
func (s *source) emptiness() (message, help string) {
	message = "the file has no content"
	switch {
	case s.isBootstrap:
		return message + ": " + s.refusal(), "write the bootstrap into it"
	case s.byEnvoy && (s.format == formatText || s.format == formatBinary):
		return message + ": " + s.of.WithoutAny(), responseHelp
	case s.byEnvoy:
		return message + ": " + s.refusal(), responseHelp
	}
	return message, "write a resource into it, or delete it"
}

var looksLikeXDS = regexp.MustCompile(`(?m)^\s*(?:- )?["']?@type["']?\s*:\s*["']?type\.googleapis\.com/envoy\.`)

// invalidUTF8 reports the first byte of the source that is not UTF-8.
func (d *decoder) invalidUTF8() bool {
	s := d.file.source
	data := s.data()
	if utf8.Valid(data) {
		return false
	}
	i := 0
	for i < len(data) {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		i += size
	}
	d.report(s.finding(codeInvalidUTF8, s.point(i), fmt.Sprintf("byte 0x%02x is not valid UTF-8", data[i]), "save the file as UTF-8"))
	return true
}
