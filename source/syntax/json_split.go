package syntax

import (
	"bytes"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// These functions split JSON that was parsed before: they check nothing, copy nothing, and go through the text
// once. Their results are parts of the text.

// JSONEntry is a member of an object. Start is the offset behind the previous value, in front of the comma; for
// the first member, Start is the offset behind the opening bracket. End is the offset behind the value.
type JSONEntry struct {
	Name       string
	Value      json.RawMessage
	Start, End int
}

// EachEntry calls f for the members of an object, in order, until f returns false. EachEntry returns false for
// a text that is no object.
func EachEntry(text []byte, f func(JSONEntry) bool) bool {
	pos := SpaceEnd(text, 0)
	if !BeginsWith(text[pos:], '{') {
		return false
	}
	for start := pos + 1; ; {
		pos = SpaceEnd(text, start)
		if BeginsWith(text[pos:], ',') {
			pos = SpaceEnd(text, pos+1)
		}
		if !BeginsWith(text[pos:], '"') {
			return true
		}
		name := text[pos:stringEnd(text, pos)]
		pos = SpaceEnd(text, SpaceEnd(text, pos+len(name))+1) // behind the colon
		m := JSONEntry{Name: StringOf(name), Start: start, End: valueEnd(text, pos)}
		m.Value = text[pos:m.End:m.End]
		if !f(m) {
			return true
		}
		start = m.End
	}
}

// ObjectOf returns the members of an object by name; the last of equal names wins. null has no members. ok is
// false for a text that is no object.
func ObjectOf(text []byte) (members map[string]json.RawMessage, ok bool) {
	members = make(map[string]json.RawMessage)
	ok = EachEntry(text, func(m JSONEntry) bool {
		members[m.Name] = m.Value
		return true
	})
	return members, ok || IsNullText(text)
}

// ListOf returns the elements of a list. null has no elements. ok is false for a text that is no list.
func ListOf(text []byte) (items []json.RawMessage, ok bool) {
	pos := SpaceEnd(text, 0)
	if !BeginsWith(text[pos:], '[') {
		return nil, IsNullText(text)
	}
	items = []json.RawMessage{}
	for pos = SpaceEnd(text, pos+1); pos < len(text) && text[pos] != ']'; pos = SpaceEnd(text, pos) {
		if text[pos] == ',' {
			pos++
			continue
		}
		end := valueEnd(text, pos)
		items = append(items, text[pos:end:end])
		pos = end
	}
	return items, true
}

// IsNullText reports whether a JSON text is null.
func IsNullText(text []byte) bool { return string(bytes.Trim(text, JSONSpace)) == "null" }

// BeginsWith reports whether a text begins with a character.
func BeginsWith(text []byte, c byte) bool { return len(text) > 0 && text[0] == c }

// StringOf is the text of a string.
func StringOf(quoted []byte) (text string) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(bytes.Trim(quoted, `"`))
	}
	_ = json.Unmarshal(quoted, &text) // read before: can't fail
	return text
}

// SpaceEnd is the first place from pos on where no space stands.
func SpaceEnd(text []byte, pos int) int {
	for pos < len(text) && (text[pos] == ' ' || text[pos] == '\n' || text[pos] == '\r' || text[pos] == '\t') {
		pos++
	}
	return min(pos, len(text))
}

// stringEnd is the place behind the string that begins at pos.
func stringEnd(text []byte, pos int) int {
	for pos++; pos < len(text); pos++ {
		i := bytes.IndexByte(text[pos:], '"')
		if i < 0 {
			break
		}
		escapes := 0
		for ; escapes < i && text[pos+i-1-escapes] == '\\'; escapes++ {
		}
		if pos += i; escapes%2 == 0 {
			return pos + 1
		}
	}
	return len(text)
}

// valueEnd is the place behind the value that begins at pos.
func valueEnd(text []byte, pos int) int {
	for depth := 0; pos < len(text); {
		switch text[pos] {
		case '"':
			pos = stringEnd(text, pos)
		case '{', '[':
			depth++
			pos++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return pos // of what is around
			}
			pos++
		case ',', ':', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return pos
			}
			pos++
			continue
		default: // of a number or a word
			if pos++; depth > 0 {
				continue
			}
			for pos < len(text) && bytes.IndexByte([]byte(",:]} \n\r\t"), text[pos]) < 0 {
				pos++
			}
		}
		if depth == 0 {
			return pos
		}
	}
	return len(text)
}

// KindOfJSON says in words what a JSON value is.
func KindOfJSON(text []byte) string {
	switch jsontext.Value(text).Kind() {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "text"
	case '0':
		return "a number"
	case 't', 'f':
		return "a boolean"
	default:
		return "null"
	}
}

// Entry is a member of an object.
type Entry struct {
	Name  string
	Value jsontext.Value
}

// EntriesOf are the members of an object, in order.
func EntriesOf(raw jsontext.Value) (list []Entry) {
	EachEntry(raw, func(m JSONEntry) bool {
		list = append(list, Entry{m.Name, jsontext.Value(m.Value)})
		return true
	})
	return list
}

// WriteObject returns an object with these members.
func WriteObject(members []Entry) jsontext.Value {
	out := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out, _ = jsontext.AppendQuote(out, m.Name) // was read as a string: can be written
		out = append(append(out, ':'), m.Value...)
	}
	return append(out, '}')
}

// Unquote returns the text of a JSON string; "" for any other value.
func Unquote(raw jsontext.Value) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}
