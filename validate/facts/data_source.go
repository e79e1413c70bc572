package facts

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// InlineContent returns the content of a data source if the resource holds the content. ok is false for a file or
// an environment variable.
func InlineContent(s *corev3.DataSource) (content []byte, ok bool) {
	switch specifier := s.GetSpecifier().(type) {
	case *corev3.DataSource_InlineBytes:
		return specifier.InlineBytes, true
	case *corev3.DataSource_InlineString:
		return []byte(specifier.InlineString), true
	}
	return nil, false
}
