package syntax

import (
	"fmt"
	"strings"
	"testing"
)

// TestManyInText checks that finding an element in a long list of a text proto does not search the whole list,
// even for a map with numbers as keys. With a search, the test would take hours.
func TestManyInText(t *testing.T) {
	if testing.Short() {
		t.Skip("reads megabytes, in one goroutine: nothing for the race detector")
	}
	const n = 300_000
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "routes { match { path: \"/%d\" } }\n", i)
	}
	b.WriteString("entries { key: \"1\" value { a: 2 } }\nentries { value { a: 1 } key: \"0\" }\n")
	var text Text
	text.Init("a.txtpb", TextProto, []byte(b.String()), anybody{})
	doc := text.document([]byte(b.String()), 0)
	for i := range n {
		l, ok := doc.literalText([]string{"routes", fmt.Sprint(i), "match", "path"}, false)
		if want := fmt.Sprintf("/%d", i); !ok || l.Means != want {
			t.Fatalf("%v, %q, want %q", ok, l.Means, want)
		}
	}
	for key, want := range map[string]string{"0": "1", "1": "2"} {
		if l, ok := doc.literalText([]string{"entries", key, "a"}, false); !ok || string(doc.Text[l.From:l.To]) != want {
			t.Errorf("%s: %v, %v", key, ok, l)
		}
	}
}
