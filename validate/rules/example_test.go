package rules_test

import (
	"fmt"
	"strings"

	"xdspub/validate/rules"
)

// All is sorted by code, and not by family.
func Example() {
	for _, r := range rules.All[:2] {
		summary, _, _ := strings.Cut(r.Doc, "\n")
		fmt.Printf("%s: %s\n", r.Code, summary)
	}
	// Output:
	// backoff-interval: A retry policy's max_interval is below its base_interval.
	// bad-cel-expression: Envoy can't parse or compile a CEL expression.
}
