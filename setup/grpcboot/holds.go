package grpcboot

import (
	"bytes"
	"encoding/json"
	"slices"

	"xdspub/internal/safefile"
)

// own are the names at the top of a gRPC bootstrap that no other file for Envoy or gRPC has at its top.
var own = []string{
	"xds_servers", "certificate_providers", "authorities", "server_listener_resource_name_template",
	"client_default_listener_resource_name_template",
}

// Holds reports whether a file is a gRPC bootstrap: a JSON object with one of the names own at its top, and with no
// name of Envoy's bootstrap or of a resource. The file may be faulty after the name, or end too early.
func Holds(path string) bool {
	data, err := safefile.Read(path, maxBytes)
	if err != nil {
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return false
	}
	found := false
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return found
		}
		switch name {
		case "@type", "resources", "static_resources", "dynamic_resources":
			return false
		}
		text, _ := name.(string)
		found = found || slices.Contains(own, text)
		var skipped json.RawMessage
		if dec.Decode(&skipped) != nil {
			return found
		}
	}
	return found
}
