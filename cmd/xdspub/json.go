package main

import (
	"encoding/json"
	"io"
)

// writeJSON writes a value as indented JSON, without escapes for HTML.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
