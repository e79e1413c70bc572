package syntax

import (
	"sync"

	"go.yaml.in/yaml/v3"

	"xdspub/diag"
)

// Point is the empty range at a byte offset into the document's text, span that of a part.
func (d *Document) Point(offset int) diag.Range { return d.Span(Span{offset, offset}) }

// Span returns the range of a part of the document.
func (d *Document) Span(s Span) diag.Range { return d.source.Span(d.offset+s.From, d.offset+s.To) }

// Document is one document of a source: a whole JSON file, or one part of a
// multi-document YAML file.
type Document struct {
	source *Text
	Text   []byte
	offset int // of text in the source
	Index  int // of the document in the source
	asked  lazy[documentViews]
}

// documentViews computes each view on first use. Most documents have no views.
type documentViews struct {
	yaml   func() *yaml.Node
	tree   func() *TextTree
	lines  func() []int // where YAML sees lines of text begin
	odd    func() bool  // may hold numbers that Envoy takes for text
	beside struct {     // yaml without the elements of lists
		sync.Once
		root *yaml.Node
	}
	lists sync.Map // long YAML lists that are parsed in pieces, by their paths
	keys  sync.Map // of long YAML mappings: from the node to a func that makes its index
	long  sync.Map // long JSON values: from the offset to a func that makes its children
}

func (d *Document) views() *documentViews {
	return d.asked.get(func() *documentViews {
		return &documentViews{
			yaml:  sync.OnceValue(func() *yaml.Node { return ParseYAML(d.Text) }),
			tree:  sync.OnceValue(func() *TextTree { return ParseText(d.Text) }),
			odd:   sync.OnceValue(func() bool { return holdsOddNumber(d.Text) }),
			lines: sync.OnceValue(func() []int { return yamlLines(d.Text) }),
		}
	})
}

// Forget drops the cached data for places in the document, which takes several times the space of the text.
// The next use computes the data again.
func (d *Document) Forget() { d.asked.made.Store(nil) }

// YAML returns the root of a YAML document.
func (d *Document) YAML() *yaml.Node { return d.views().yaml() }

// Tree returns the fields of a text proto.
func (d *Document) Tree() *TextTree { return d.views().tree() }

func (d *Document) lines() []int { return d.views().lines() }

// Odd reports whether the document may hold numbers that Envoy takes for text.
func (d *Document) Odd() bool { return d.views().odd() }

// asJSON returns the document as one of JSON.
func (d *Document) asJSON() jsonDocument { return jsonDocument{d} }

// AsYAML returns the document as one of YAML.
func (d *Document) AsYAML() YAMLDocument { return YAMLDocument{d} }

// jsonDocument is a Document of JSON.
type jsonDocument struct{ *Document }

// YAMLDocument is a Document of YAML.
type YAMLDocument struct{ *Document }

// Finding is an error at a place that no resource is known for.
func (d *Document) Finding(code diag.Code, at diag.Range, message, help string) diag.Diagnostic {
	return d.source.Finding(code, at, message, help)
}
