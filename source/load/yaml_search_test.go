package load

import (
	"strings"
	"testing"
)

// TestSearchLongLine: the search for a mistake takes time in proportion to the text, on one line
// too: JSON without line breaks is what programs write. A search that takes the square of it does
// not end within the time of a test.
func TestSearchLongLine(t *testing.T) {
	if testing.Short() {
		t.Skip("reads megabytes, in one goroutine: nothing for the race detector")
	}
	const many = 500_000
	for what, tt := range map[string]struct {
		text string
		want string // in the message
	}{
		"numbers":  {"[" + strings.Repeat(`{"a":1},`, many), "this [ is not closed"},
		"words":    {"a: [" + strings.Repeat("a,", many), "this [ is not closed"},
		"anchors":  {"a: [" + strings.Repeat("&a,", many), "this [ is not closed"},
		"brackets": {"a: " + strings.Repeat("[", many), "this [ is not closed"},
		"texts":    {"a: {" + strings.Repeat(`'b':1,`, many), "this { is not closed"},
		"tags":     {"a: " + strings.Repeat("!a ", many) + "\n}", "a value begins with }"},
		"breaks":   {"a: [1,\u2028\n \u0085,2" + strings.Repeat("\u2028", many) + "\n}", "} does not close the open bracket, which needs ]"},
	} {
		s := newSource("a.yaml", formatYAML, []byte(tt.text))
		m := s.sourceText.document(s.data(), 0).yamlMistake(2)
		if m == nil || !strings.HasPrefix(m.message, tt.want) {
			t.Errorf("%s: %+v, want %s", what, m, tt.want)
		}
	}
}

// TestMistakesLongLine is the same for JSON and text protos.
func TestMistakesLongLine(t *testing.T) {
	if testing.Short() {
		t.Skip("reads megabytes, in one goroutine: nothing for the race detector")
	}
	const many = 100_000
	for what, tt := range map[string]struct {
		format, text, want string
	}{
		"objects":     {"json", "[" + strings.Repeat(`{"a":[1]},`, many), "this [ is not closed"},
		"no comma":    {"json", "[" + strings.Repeat(`{"a":{}},`, many) + "{}{}]", "a comma is missing"},
		"template":    {"json", "[" + strings.Repeat(`"${a}",`, many) + "x]", "this is a shell variable"},
		"second":      {"json", "[" + strings.Repeat(`{"a":1},`, many) + "{}] {}", "a second document"},
		"messages":    {"pb_text", strings.Repeat("resources { } ", many) + "}", "this } closes nothing"},
		"quote":       {"pb_text", strings.Repeat("resources { } ", many) + `nonce: "`, "the quote is not closed"},
		"many breaks": {"pb_text", "resources [" + strings.Repeat("\n{},", many), "this [ is not closed"},
	} {
		found := AsWritten(Input{Name: "a", Format: tt.format, Data: []byte(tt.text)}).Diagnostics
		if len(found) != 1 || !strings.HasPrefix(found[0].Message, tt.want) {
			t.Errorf("%s: %.300v, want %s", what, found, tt.want)
		}
	}
}
