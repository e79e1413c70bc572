package xds

import (
	"iter"
	"strconv"
	"strings"
)

// Path names a field inside a message, as in
//
//	filter_chains[0].filters[1].typed_config.http_filters[2].name
//	typed_extension_protocol_options["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"]
//
// Names are those of the .proto file (snake_case). An Any has no step of its own: the fields of its payload follow
// the path of the Any. The empty Path is the message itself.
type Path string

// Field returns the path of the field name below p.
func (p Path) Field(name string) Path {
	if p == "" {
		return Path(name)
	}
	return p + "." + Path(name)
}

// Index returns the path of element i of the list p.
func (p Path) Index(i int) Path { return p + "[" + Path(strconv.Itoa(i)) + "]" }

// Key returns the path of the entry k of the map p.
func (p Path) Key(k string) Path { return p + "[" + Path(strconv.Quote(k)) + "]" }

// IsElement reports whether p is an element of list, a field of the message itself.
func (p Path) IsElement(list string) bool {
	return strings.HasPrefix(string(p), list+"[") && strings.IndexByte(string(p), ']') == len(p)-1
}

// Join returns the path of q below p.
func (p Path) Join(q Path) Path {
	if p == "" || q == "" || q[0] == '[' {
		return p + q
	}
	return p + "." + q
}

// Step is one part of a Path: the key Name of a map if Key is true; otherwise the field Name, or, if Name is empty,
// the element Index of a list.
type Step struct {
	Name  string
	Index int
	Key   bool
}

// Steps returns the parts of p from the outside in. It ends at the first malformed part.
func (p Path) Steps() iter.Seq[Step] {
	return func(yield func(Step) bool) {
		s := string(p)
		for s != "" {
			var step Step
			switch {
			case s[0] == '.':
				s = s[1:]
				continue
			case strings.HasPrefix(s, `["`):
				quoted, err := strconv.QuotedPrefix(s[1:])
				if err != nil {
					return
				}
				step.Name, _ = strconv.Unquote(quoted)
				step.Key = true
				s = strings.TrimPrefix(s[1+len(quoted):], "]")
			case s[0] == '[':
				number, rest, ok := strings.Cut(s[1:], "]")
				i, err := strconv.Atoi(number)
				if !ok || err != nil {
					return
				}
				step.Index = i
				s = rest
			default:
				end := strings.IndexAny(s, ".[")
				if end < 0 {
					end = len(s)
				}
				step.Name = s[:end]
				s = s[end:]
			}
			if !yield(step) {
				return
			}
		}
	}
}
