package re2_test

import (
	"encoding/json"
	"os"
	"testing"

	"xdspub/validate/re2"
)

// TestSizes holds Compile against Envoy 1.40.0: pattern by pattern the size that
// it named when max_program_size was 1, or null where it refused the pattern.
func TestSizes(t *testing.T) {
	data, err := os.ReadFile("testdata/sizes.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases [][2]any
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		pattern := c[0].(string)
		program, err := re2.Compile(pattern)
		size, taken := c[1].(float64)
		switch {
		case taken && err != nil:
			t.Errorf("%q: %v, Envoy takes it", pattern, err)
		case !taken && err == nil:
			t.Errorf("%q is taken, Envoy refuses it", pattern)
		case taken && program.Exact && program.Size != int(size):
			t.Errorf("%q: size %d, want %d", pattern, program.Size, int(size))
		case taken && !program.Exact && program.Size < int(size):
			t.Errorf("%q: size %d, want at least %d", pattern, program.Size, int(size))
		}
	}
}

// FuzzCompile looks for patterns that do not come back.
func FuzzCompile(f *testing.F) {
	for _, pattern := range []string{`/users/[^/]+`, `(?i)^a|b$`, `\C\p{Greek}\x{100}`, `[[:alpha:]]{2,}(a*)*`, `\Q[\E[^]\]]`, `é+[é]`} {
		f.Add(pattern)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		if program, err := re2.Compile(pattern); err == nil && program.Size < 1 {
			t.Errorf("%q: size %d", pattern, program.Size)
		}
	})
}
