package substitution

import (
	"testing"

	"xdspub/envoy/envoyapi"
)

// TestBuiltIn: this package knows each word in the commands of a version.
func TestBuiltIn(t *testing.T) {
	for _, v := range envoyapi.Versions {
		for name, words := range v.FormatCommands().BuiltIn {
			if _, err := parse(words); err != nil {
				t.Errorf("Envoy %s, %s: %v", v.Name, name, err)
			}
		}
	}
}
