package rules_test

import (
	"fmt"
	"strings"

	"xdspub/validate/rules"
)

// The list is sorted by code, whatever family a rule is of.
func Example() {
	for _, r := range rules.All[:2] {
		summary, _, _ := strings.Cut(r.Doc, "\n")
		fmt.Printf("%s: %s\n", r.Code, summary)
	}
	// Output:
	// backoff-interval: The longest pause between retries is shorter than the shortest.
	// bad-cel-expression: A CEL expression is none that Envoy takes.
}
