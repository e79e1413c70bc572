package re2_test

import (
	"testing"

	"xdspub/validate/re2"
)

// TestSizes compares Compile with testdata/sizes.json. For each pattern, the file has the sizes that Envoy reported
// in Latin-1 and in UTF-8 with max_program_size 1, or null if Envoy refused the pattern.
func TestSizes(t *testing.T) {
	for _, c := range readSizes(t) {
		for encoding, size := range c.sizes {
			program, err := re2.Compile(c.pattern, encoding)
			switch taken := size > 0; {
			case taken && err != nil:
				t.Errorf("%d: %q: %v, Envoy takes it", encoding, c.pattern, err)
			case !taken && err == nil:
				t.Errorf("%d: %q is taken, Envoy refuses it", encoding, c.pattern)
			case taken && program.Exact && program.Size != size:
				t.Errorf("%d: %q: size %d, want %d", encoding, c.pattern, program.Size, size)
			case taken && !program.Exact && program.Size < size*9/10:
				t.Errorf("%d: %q: size %d, want about %d", encoding, c.pattern, program.Size, size)
			}
		}
	}
}

// FuzzCompile looks for patterns for which Compile does not end.
func FuzzCompile(f *testing.F) {
	for _, pattern := range []string{`/users/[^/]+`, `(?i)^a|b$`, `\C\p{Greek}\x{100}`, `[[:alpha:]]{2,}(a*)*`, `\Q[\E[^]\]]`, `é+[é]`} {
		f.Add(pattern)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		for _, encoding := range []re2.Encoding{re2.Latin1, re2.UTF8} {
			if program, err := re2.Compile(pattern, encoding); err == nil && program.Size < 1 {
				t.Errorf("%q: size %d", pattern, program.Size)
			}
		}
	})
}
