package syntax

import (
	"strings"
	"testing"
)

// TestSearchLongLine checks that the search for a mistake takes time in proportion to the text, even on one
// line, because programs write JSON without line breaks. A quadratic search would not end within the test.
func TestSearchLongLine(t *testing.T) {
	if testing.Short() {
		t.Skip("reads megabytes, in one goroutine: nothing for the race detector")
	}
	const many = 500_000
	for what, tt := range map[string]struct {
		text string
		want string // a part of the message
	}{
		"numbers":  {"[" + strings.Repeat(`{"a":1},`, many), "this [ is not closed"},
		"words":    {"a: [" + strings.Repeat("a,", many), "this [ is not closed"},
		"anchors":  {"a: [" + strings.Repeat("&a,", many), "this [ is not closed"},
		"brackets": {"a: " + strings.Repeat("[", many), "this [ is not closed"},
		"texts":    {"a: {" + strings.Repeat(`'b':1,`, many), "this { is not closed"},
		"tags":     {"a: " + strings.Repeat("!a ", many) + "\n}", "a value begins with }"},
		"breaks":   {"a: [1,\u2028\n \u0085,2" + strings.Repeat("\u2028", many) + "\n}", "} does not close the open bracket, which needs ]"},
	} {
		var s Text
		s.Init("a.yaml", YAML, []byte(tt.text), anybody{})
		m := yamlMistake(s.document(s.Data(), 0).AsYAML(), 2)
		if m == nil || !strings.HasPrefix(m.Message, tt.want) {
			t.Errorf("%s: %+v, want %s", what, m, tt.want)
		}
	}
}

// anybody is a Reader for texts without secrets.
type anybody struct{}

func (anybody) ByEnvoy() bool            { return false }
func (anybody) OnlyJSON() bool           { return false }
func (anybody) Removal() string          { return "" }
func (anybody) IsField(string) bool      { return true }
func (anybody) MayBeSecret(string) bool  { return false }
func (anybody) HoldsSecrets([]byte) bool { return false }
