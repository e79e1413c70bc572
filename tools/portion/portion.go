// Package portion says how much of a long enumeration a test goes through: all of it for make soak PART=whole, a fixed
// sample for make test, and less with -short.
package portion

import (
	"os"
	"testing"
)

// Every returns n: of n cases in a row, the test tries the last one. sample is n for make test, short with -short.
func Every(sample, short int) int {
	switch {
	case os.Getenv("XDSPUB_WHOLE") != "":
		return 1
	case testing.Short():
		return short
	}
	return sample
}
