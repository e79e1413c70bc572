package publish

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
)

// encoder writes records. They name each published file, and every change writes two: by
// encoding/json that would be four fifths of the time that an edit takes, so the files are
// written by hand, to the same bytes.
type encoder struct {
	names []string // of the files that were written last, sorted
}

// encode returns json.MarshalIndent(record, "", "  ").
func (e *encoder) encode(record any) ([]byte, error) {
	switch r := record.(type) {
	case Manifest:
		return e.manifest(r)
	case Intent:
		return e.intent(r)
	default:
		return json.MarshalIndent(r, "", "  ")
	}
}

func (e *encoder) manifest(m Manifest) ([]byte, error) {
	files := m.Files
	m.Files = nil
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil || len(files) == 0 {
		return data, err
	}
	head := bytes.TrimSuffix(data, []byte("\n}")) // Files is the last field
	return append(e.appendFiles(head, files, "  "), "\n}"...), nil
}

func (e *encoder) intent(in Intent) ([]byte, error) {
	files := in.Manifest.Files
	in.Manifest.Files = nil
	data, err := json.MarshalIndent(in, "", "  ")
	if err != nil || len(files) == 0 {
		return data, err
	}
	// No string holds a line break: nothing but the end of the manifest looks like this.
	end := []byte("\n  },\n  \"record\": ")
	head, tail, ok := bytes.Cut(data, end)
	if !ok {
		return nil, errors.New("the manifest has no end")
	}
	return slices.Concat(e.appendFiles(slices.Clone(head), files, "    "), end, tail), nil
}

// appendFiles appends the field "files" behind others, with the indent of its object.
func (e *encoder) appendFiles(b []byte, files map[string]Published, indent string) []byte {
	b = slices.Grow(b, len(files)*160)
	b = append(b, ",\n"+indent+"\"files\": {"...)
	for i, name := range e.sorted(files) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, '\n'), indent...)
		b = appendString(append(b, "  "...), name)
		b = append(append(b, ": {\n"...), indent...)
		b = appendString(append(b, "    \"version\": "...), files[name].Version)
		b = append(append(b, ",\n"...), indent...)
		b = appendString(append(b, "    \"sum\": "...), files[name].Sum)
		b = append(append(b, '\n'), indent...)
		b = append(b, "  }"...)
	}
	return append(append(append(b, '\n'), indent...), '}')
}

// sorted returns the names of files. Mostly they are those of the last time.
func (e *encoder) sorted(files map[string]Published) []string {
	other := func(name string) bool { _, there := files[name]; return !there }
	if len(e.names) != len(files) || slices.ContainsFunc(e.names, other) {
		e.names = slices.Sorted(maps.Keys(files))
	}
	return e.names
}

func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) // a string can be encoded
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
