package syntax

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// LooseJSON converts JSON that Envoy's parser accepts to strict JSON: strings and names in single quotes,
// names without quotes, a comma behind the last element, control characters in strings. ok is false for a text
// that Envoy refuses, too.
func LooseJSON(text []byte) ([]byte, bool) {
	p := looseParser{rest: text}
	p.value()
	if p.skip(); p.failed || len(p.rest) > 0 || p.out.Len() > 0 && p.out.Bytes()[0] == 'n' {
		return nil, false
	}
	return p.out.Bytes(), true
}

type looseParser struct {
	rest   []byte
	out    bytes.Buffer
	depth  int
	failed bool
}

func (p *looseParser) skip() { p.rest = bytes.TrimLeft(p.rest, JSONSpace) }

// peek returns the next character after spaces.
func (p *looseParser) peek() byte {
	if p.skip(); p.failed || len(p.rest) == 0 {
		p.failed = true
		return 0
	}
	return p.rest[0]
}

// take takes a character over.
func (p *looseParser) take(c byte) {
	if p.peek() != c {
		p.failed = true
		return
	}
	p.rest = p.rest[1:]
	p.out.WriteByte(c)
}

func (p *looseParser) value() {
	switch p.peek() {
	case '{':
		p.elements('{', '}', func() {
			p.name()
			p.take(':')
			p.value()
		})
	case '[':
		p.elements('[', ']', p.value)
	case '"', '\'':
		p.text()
	default:
		dec := jsontext.NewDecoder(bytes.NewReader(p.rest))
		token, err := dec.ReadToken()
		if err != nil {
			p.failed = true
			return
		}
		fmt.Fprint(&p.out, token)
		p.rest = p.rest[dec.InputOffset():]
	}
}

func (p *looseParser) elements(open, end byte, element func()) {
	if p.depth++; p.depth > MaxDepth {
		p.failed = true
	}
	p.take(open)
	for first := true; p.peek() != end && !p.failed; first = false {
		if !first {
			p.out.WriteByte(',')
		}
		element()
		if p.peek() == ',' {
			p.rest = p.rest[1:]
		} else if p.rest = bytes.TrimLeft(p.rest, JSONSpace); len(p.rest) > 0 && p.rest[0] != end {
			p.failed = true
		}
	}
	p.take(end)
	p.depth--
}

// name is the name of a member.
func (p *looseParser) name() {
	if c := p.peek(); c == '"' || c == '\'' {
		p.text()
		return
	}
	size := bytes.IndexFunc(p.rest, func(r rune) bool {
		return r != '_' && r != '$' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	if size <= 0 || p.rest[0] >= '0' && p.rest[0] <= '9' {
		p.failed = true
		return
	}
	fmt.Fprintf(&p.out, "%q", p.rest[:size])
	p.rest = p.rest[size:]
}

// text is a string in quotes of either kind.
func (p *looseParser) text() {
	quote := p.rest[0]
	out := []byte{'"'}
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == quote:
			out = append(out, '"')
			if p.rest = p.rest[i+1:]; !jsontext.Value(out).IsValid() {
				p.failed = true
			}
			p.out.Write(out)
			return
		case c == '\\' && i+1 < len(p.rest):
			i++
			if p.rest[i] == '\'' {
				out = append(out, '\'')
			} else {
				out = append(out, c, p.rest[i])
			}
		case c == '"':
			out = append(out, `\"`...)
		case c < ' ':
			out = fmt.Appendf(out, `\u%04x`, c)
		default:
			out = append(out, c)
		}
	}
	p.failed = true
}
