package syntax

import (
	"path/filepath"
	"slices"
	"strings"
)

// Format is how a text is written.
type Format int

// The formats. A file of another format is only checked for a resemblance to xDS.
const (
	Other Format = iota
	YAML
	JSON
	TextProto
	Binary
)

// formatRow describes a readable format.
type formatRow struct {
	format Format
	Name   string // of an Input
	word   string // in messages
	// suffixes are the suffixes that Envoy knows, the usual one first; others are suffixes for source trees
	// only.
	suffixes, others []string
}

var formats = []formatRow{
	{JSON, "json", "JSON", []string{".json"}, nil},
	{YAML, "yaml", "YAML", []string{".yaml", ".yml"}, nil},
	{Binary, "pb", "binary protobuf", []string{".pb"}, nil},
	{TextProto, "pb_text", "text proto", []string{".pb_text"}, []string{".txtpb", ".textproto"}},
}

// Formats are the names of the formats of an Input.
var Formats = func() (names []string) {
	for _, f := range formats {
		names = append(names, f.Name)
	}
	return names
}()

// FormatNamed returns the format with one of the names in Formats.
func FormatNamed(name string) Format {
	for _, f := range formats {
		if f.Name == name {
			return f.format
		}
	}
	return Other
}

// FormatOf is the format of a file in a source tree, by its suffix.
func FormatOf(path string) Format {
	suffix := strings.ToLower(filepath.Ext(path))
	for _, f := range formats {
		if slices.Contains(f.suffixes, suffix) || slices.Contains(f.others, suffix) {
			return f.format
		}
	}
	return Other
}

// EnvoyFormat is the format that Envoy takes from a suffix: all but a few are JSON
// (MessageUtil::loadFromFile, in any case of letters).
func EnvoyFormat(path string) Format {
	suffix := strings.ToLower(filepath.Ext(path))
	for _, f := range formats {
		if slices.Contains(f.suffixes, suffix) {
			return f.format
		}
	}
	return JSON
}

// Row returns the row of a format; the zero row for an unreadable format.
func (f Format) Row() formatRow {
	for _, row := range formats {
		if row.format == f {
			return row
		}
	}
	return formatRow{}
}

// Suffixes lists the suffixes of resource files for a person, as in ".json, .yaml or .pb".
func Suffixes() string {
	var all []string
	for _, f := range formats {
		all = slices.Concat(all, f.suffixes, f.others)
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " or " + all[last]
}
