package decode_test

import (
	"fmt"

	"xdspub/source/decode"
	"xdspub/source/syntax"
)

// Decode returns the resources of a file, and the findings about the file.
func ExampleSource_Decode() {
	text := []byte(`"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: web
type: STRICT_DSN
`)
	file := decode.NewSource("web.yaml", syntax.YAML, text, decode.SourceOptions{}).Decode(nil)
	for _, r := range file.Resources {
		fmt.Println(r)
	}
	fmt.Println(file.Diagnostics())
	// Output:
	// cluster "web"
	// [web.yaml:3:7: error: type has no value "STRICT_DSN" [unknown-enum-value]]
}
