package load

import (
	"path/filepath"
	"slices"
	"strings"
)

// format is how a text is written.
type format int

const (
	formatOther format = iota // only looked at: does it look like xDS?
	formatYAML
	formatJSON
	formatText
	formatBinary
)

// formatRow is what there is to know of a format that is read.
type formatRow struct {
	format format
	name   string // of an Input
	word   string // in messages
	// suffixes are those that Envoy knows, the usual one first; others are read in source trees
	// alone.
	suffixes, others []string
}

var formats = []formatRow{
	{formatJSON, "json", "JSON", []string{".json"}, nil},
	{formatYAML, "yaml", "YAML", []string{".yaml", ".yml"}, nil},
	{formatBinary, "pb", "binary protobuf", []string{".pb"}, nil},
	{formatText, "pb_text", "text proto", []string{".pb_text"}, []string{".txtpb", ".textproto"}},
}

// Formats are the names of the formats of an Input.
var Formats = func() (names []string) {
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}()

func formatNamed(name string) format {
	for _, f := range formats {
		if f.name == name {
			return f.format
		}
	}
	return formatOther
}

// formatOf is the format of a file in a source tree, by its suffix.
func formatOf(path string) format {
	suffix := strings.ToLower(filepath.Ext(path))
	for _, f := range formats {
		if slices.Contains(f.suffixes, suffix) || slices.Contains(f.others, suffix) {
			return f.format
		}
	}
	return formatOther
}

// envoyFormat is the format that Envoy takes from a suffix: all but a few are JSON
// (MessageUtil::loadFromFile, in any case of letters).
func envoyFormat(path string) format {
	suffix := strings.ToLower(filepath.Ext(path))
	for _, f := range formats {
		if slices.Contains(f.suffixes, suffix) {
			return f.format
		}
	}
	return formatJSON
}

// row is what there is to know of a format; nothing of one that is not read.
func (f format) row() formatRow {
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
