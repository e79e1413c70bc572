package publish

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/counts.txt and its sums in docs/evidence/reliability.md again, and fail")

// TestCounts compares the numbers of faults and kills in TestFaults and TestKill with testdata/counts.txt, and
// the sums with docs/evidence/reliability.md.
func TestCounts(t *testing.T) {
	const table, page = "testdata/counts.txt", "../../docs/evidence/reliability.md"
	counts := fmt.Sprintf("%-60s %8s %8s %8s\n", "scenario", "calls", "faults", "kills")
	var calls, faults, killed int
	chosen := make(moments)
	all := scenarios()
	for _, s := range all {
		opening, rest := s.calls(t)
		n := 0
		for i, call := range rest {
			n += len(faultsOf(i, call))
		}
		k := len(chosen.of(slices.Concat(opening, rest)))
		counts += fmt.Sprintf("%-60s %8d %8d %8d\n", s.name, len(rest), n, k)
		calls, faults, killed = calls+len(rest), faults+n, killed+k
	}
	sums := fmt.Sprintf("%d scenarios with %s system calls have %s faults and %s kills.\n", len(all), thousands(calls), thousands(faults), thousands(killed))

	doc, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- counts: go test ./render/publish -run TestCounts -update -->\n\n", "\n<!-- end of counts -->"
	before, rest, ok := bytes.Cut(doc, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		t.Fatalf("%s: no place for the counts, between %q and %q", page, begin, end)
	}
	for name, want := range map[string][]byte{
		table: []byte(counts),
		page:  fmt.Appendf(nil, "%s%s%s%s%s", before, begin, sums, end, after),
	} {
		got, err := os.ReadFile(name)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if bytes.Equal(got, want) {
			continue
		}
		t.Errorf("%s has other counts than these; go test ./render/publish -run TestCounts -update writes them:\n%s%s", name, counts, sums)
		if *update {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// thousands returns n below a million with a comma before its last three digits.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
