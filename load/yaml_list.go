package load

import (
	"bytes"
	"encoding/json"
	"regexp"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// A YAML parser's tree takes forty times the space of its text. A long list of
// resources is therefore parsed in pieces, side by side, where its elements can be
// told apart without a parser; the result is the same. Anything unusual, an error
// among it, has the document parsed as a whole.
const (
	// longList is how many elements are worth it.
	longList = 128
	// piece is how many elements are parsed at a time.
	piece = 64
)

// yamlList is a document with a list of resources, cut into its elements.
type yamlList struct {
	// rest is the document without them.
	rest []byte
	// starts are the offsets of the elements in the document, and where the last ends.
	starts []int
}

var resourcesKey = regexp.MustCompile(`(?m)^resources:[ \t]*(?:#.*)?\r?\n`)

// connected tells whether a text may have what one element of a list can share with
// another, an anchor or a directive, or what takes a parser to tell elements apart.
func connected(text []byte) bool {
	before := byte('\n')
	for i, c := range text {
		switch c {
		case '&', '*', '!':
			if bytes.IndexByte([]byte(" \n[{,:-"), before) >= 0 && i+1 < len(text) && bytes.IndexByte([]byte(" \"'\r\n"), text[i+1]) < 0 {
				return true
			}
		case '%', '.':
			if before == '\n' {
				return true
			}
		case '\t':
			return true
		}
		before = c
	}
	return false
}

// list cuts a document into the elements of its resources.
func (d *document) list() (l yamlList, ok bool) {
	key := resourcesKey.FindIndex(d.text)
	if key == nil || len(d.text) < longList || connected(d.text) {
		return l, false
	}
	indent := -1
	end := len(d.text)
	for pos := key[1]; pos < len(d.text); {
		size := yamlLine(d.text[pos:])
		line := d.text[pos : pos+size]
		content := bytes.TrimLeft(line, " ")
		depth := len(line) - len(content)
		switch {
		case len(bytes.TrimSpace(content)) == 0 || content[0] == '#':
		case indent < 0 && isElement(content):
			indent = depth
			l.starts = append(l.starts, pos)
		case indent < 0:
			return l, false
		case depth == indent && isElement(content):
			l.starts = append(l.starts, pos)
		case depth > indent:
		case depth == 0: // the next key
			end = pos
		default:
			return l, false
		}
		if end == pos {
			break
		}
		pos += size
	}
	if len(l.starts) < longList {
		return l, false
	}
	l.starts = append(l.starts, end)
	l.rest = append(bytes.Clone(d.text[:l.starts[0]]), d.text[end:]...)
	return l, true
}

func isElement(content []byte) bool {
	return content[0] == '-' && len(content) > 1 && (content[1] == ' ' || content[1] == '\n' || content[1] == '\r')
}

// long decodes a document with a long list of resources in pieces. It is false where
// the document has to be parsed as a whole; nothing was reported then.
func (d *decoder) long(doc *document) bool {
	l, ok := doc.list()
	if !ok {
		return false
	}
	text, findings := doc.source.document(l.rest, 0).toJSON()
	var members map[string]json.RawMessage
	if len(findings) > 0 || json.Unmarshal(text, &members) != nil || string(members["resources"]) != "null" || has(members, "@type") {
		return false
	}
	n := len(l.starts) - 1
	parts := make([]file, (n+piece-1)/piece)
	whole := make([]bool, len(parts))
	v := value{doc: doc}
	parallel(len(parts), func(p int) {
		from, to := p*piece, min((p+1)*piece, n)
		text, findings := doc.source.document(doc.text[l.starts[from]:l.starts[to]], 0).toJSON()
		var items []json.RawMessage
		if len(findings) > 0 || json.Unmarshal(text, &items) != nil || len(items) != to-from {
			return
		}
		whole[p] = true
		one := &decoder{file: &parts[p]}
		for i, item := range items {
			one.element(value{doc, item, v.path.Field("resources").Index(from + i)})
		}
	})
	for _, ok := range whole {
		if !ok {
			return false
		}
	}
	d.any = true
	var around discoveryv3.DiscoveryResponse
	if d.message(value{doc, without(members, "resources"), v.path}, &around) {
		d.envelope(&around)
	}
	d.takeOver(parts)
	return true
}
