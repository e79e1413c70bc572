package main

import "testing"

// TestMeasure holds that the measure tells sentences apart.
func TestMeasure(t *testing.T) {
	for _, c := range []struct {
		text  string
		vague bool
	}{
		{"private means that it may have those that are for all clients.", true},
		{"private permits secrets without constraints.", false},
		{"It keeps what it finds.", true},
		{"lookOnDisk answers isOut from the disk and caches the answer.", false},
		{"What is there is that.", true},
		{"Both of these.", false}, // a fragment
	} {
		list := sentencesOf("", 1, c.text)
		if got := len(vagueOf(list)) > 0; got != c.vague {
			t.Errorf("%q: vague %v, want %v", c.text, got, c.vague)
		}
	}
}
