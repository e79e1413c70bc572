// Package portion says which cases of a long enumeration a test tries: all cases for make soak PART=whole, a fixed
// sample for make test, and fewer cases with -short.
package portion

import (
	"os"
	"testing"
)

// Every returns n: a test tries each n-th case of an enumeration. n is 1 for make soak PART=whole, short with
// -short, and otherwise sample.
func Every(sample, short int) int {
	switch {
	case os.Getenv("XDSPUB_WHOLE") != "":
		return 1
	case testing.Short():
		return short
	}
	return sample
}
