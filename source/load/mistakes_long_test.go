package load

import (
	"strings"
	"testing"
)

// TestMistakesLongLine checks mistakes in JSON and text protos on one long line.
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
