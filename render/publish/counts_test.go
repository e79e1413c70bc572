package publish

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "write the counts in docs/evidence/reliability.md again, and fail")

// TestCounts holds docs/evidence/reliability.md to what TestFaults and TestKill do.
func TestCounts(t *testing.T) {
	const name = "../../docs/evidence/reliability.md"
	table := "| scenario | system calls | faults | kills |\n|---|---:|---:|---:|\n"
	var calls, faults, killed int
	chosen := make(moments)
	for _, s := range scenarios() {
		opening, rest := s.calls(t)
		n := 0
		for i, call := range rest {
			n += len(faultsOf(i, call))
		}
		k := len(chosen.of(slices.Concat(opening, rest)))
		table += fmt.Sprintf("| %s | %d | %d | %d |\n", s.name, len(rest), n, k)
		calls, faults, killed = calls+len(rest), faults+n, killed+k
	}
	table += fmt.Sprintf("| all | %d | %d | %d |\n", calls, faults, killed)

	doc, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- counts: go test ./render/publish -run TestCounts -update -->\n\n", "\n<!-- end of counts -->"
	before, rest, ok := bytes.Cut(doc, []byte(begin))
	was, after, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		t.Fatalf("%s: no place for the counts, between %q and %q", name, begin, end)
	}
	if string(was) == table {
		return
	}
	if !*update {
		t.Fatalf("%s has other counts than these, run go test ./render/publish -run TestCounts -update:\n%s", name, table)
	}
	if err := os.WriteFile(name, fmt.Appendf(nil, "%s%s%s%s%s", before, begin, table, end, after), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Errorf("%s was written again", name)
}
