package decode_test

import (
	"strings"
	"testing"

	"xdspub/source/decode"
)

// TestJSONDepth checks the nesting depth of JSON, even of broken JSON.
func TestJSONDepth(t *testing.T) {
	for text, want := range map[string]int{
		`1`: 0, `{}`: 1, ` {"a": [1, {"a": "[[[[{"}], "a": 2}`: 3, `[[`: 2, `[[}`: 2,
		strings.Repeat(`{"a":`, 300) + `1` + strings.Repeat(`}`, 300): 300,
	} {
		if j, _ := decode.ParseJSON("a.json", []byte(text)); j.Depth() != want {
			t.Errorf("%.20s has the depth %d, want %d", text, j.Depth(), want)
		}
	}
}
