package syntax

import "fmt"

// A document has the place of the value at a path.
func Example() {
	var text Text
	text.Init("cds.yaml", YAML, []byte("name: a\ntls:\n  key: b\n"), anybody{})
	at := text.Documents()[0].RangeOf([]string{"tls", "key"}, false)
	fmt.Println(at.Line, at.Column)
	// Output:
	// 3 8
}
