package syntax

import "bytes"

func (s *Text) document(text []byte, offset int) *Document {
	return &Document{source: s, Text: text, offset: offset}
}

// Documents cuts the text into documents, and keeps them.
func (s *Text) Documents() []*Document {
	c := s.content()
	if s.Format == YAML {
		s.split(c)
	} else {
		s.whole(c)
	}
	return c.documents
}

// Kept returns a document of the split text.
func (s *Text) Kept(index int) *Document { return s.content().documents[index] }

// WithoutTabs writes spaces for tabs that Envoy's parser reads over.
func (s *Text) WithoutTabs() { s.content().data = withoutTabs(s.Data()) }

// whole is the content of the source as its only document.
func (s *Text) whole(c *content) *Document {
	d := s.document(c.data, 0)
	c.documents = []*Document{d}
	return d
}

// withoutTabs writes spaces for the tabs on lines that hold nothing, or a comment: Envoy's
// parser reads over such lines, unless a scalar could go on there.
func withoutTabs(text []byte) []byte {
	if bytes.IndexByte(text, '\t') < 0 {
		return text
	}
	out := bytes.Clone(text)
	scalar := false // the line above ends with a scalar without quotes
	for pos, end := 0, 0; pos < len(out); pos = end {
		end = pos + YAMLLine(out[pos:])
		line := out[pos:end]
		content := bytes.TrimSpace(line)
		if len(content) > 0 && content[0] != '#' {
			scalar = bytes.IndexByte([]byte(`:{}[],"'`), content[len(content)-1]) < 0 && !bytes.Contains(content, []byte(" #")) && !isMarker(line, "---")
			continue
		}
		if !scalar {
			indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
			copy(indent, bytes.ReplaceAll(indent, []byte{'\t'}, []byte{' '}))
		}
	}
	return out
}

// split cuts a YAML file into documents. A line that begins with --- always
// starts one: inside a scalar the marker is not allowed. sigs.k8s.io/yaml and
// Envoy read only the first document of a file.
func (s *Text) split(c *content) []*Document {
	data := c.data
	var docs []*Document
	start, content := 0, false
	cut := func(end int) {
		if content {
			docs = append(docs, s.document(withoutVersion(data[start:end]), start))
		}
		start, content = end, false
	}
	for pos, end := 0, 0; pos < len(data); pos = end {
		end = pos + YAMLLine(data[pos:])
		line := data[pos:end]
		switch {
		case isMarker(line, "---"):
			if content { // else directives and comments above belong to it
				cut(pos)
			}
			content = true
		case isMarker(line, "..."):
			cut(end)
		default:
			trimmed := bytes.TrimSpace(line)
			content = content || len(trimmed) > 0 && trimmed[0] != '#' && line[0] != '%'
		}
	}
	cut(len(data))
	for i, d := range docs {
		d.Index = i
	}
	c.documents = docs
	return docs
}

// withoutVersion makes a comment of a %YAML directive: the parser refuses any but
// version 1.1, Envoy's takes them all and reads them alike.
func withoutVersion(text []byte) []byte {
	for at, size := 0, 0; at < len(text); at += size {
		size = YAMLLine(text[at:])
		line := bytes.TrimSpace(text[at : at+size])
		switch {
		case bytes.HasPrefix(text[at:], []byte("%YAML ")):
			text = bytes.Clone(text)
			text[at] = '#'
		case len(line) > 0 && line[0] != '#' && line[0] != '%':
			return text // directives stand in front of all else
		}
	}
	return text
}
