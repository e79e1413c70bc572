package main

import (
	"encoding/json"
	"io"
)

// writeJSON writes a value for people and programs: indented, and without the escapes of HTML.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
