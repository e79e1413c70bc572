package listener

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestChainIndex compares the index with a plain comparison of all pairs of chains, for random chains of which many
// are similar.
func TestChainIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	overlaps := 0
	for range 300 {
		chains := make([]chainMatch, r.IntN(200))
		values := 1 + r.IntN(12)
		index := newChainIndex(len(chains))
		for i := range chains {
			for k := range criteria {
				chains[i].criteria[k] = []string{string(rune('a' + r.IntN(values)))}
				for range r.IntN(4) {
					chains[i].criteria[k] = append(chains[i].criteria[k], string(rune('a'+r.IntN(values))))
				}
			}
			want := slices.IndexFunc(chains[:i], func(c chainMatch) bool { return overlapping(c, chains[i]) })
			got, ok := index.overlapped(chains[i])
			if ok != (want >= 0) || ok && got != want {
				t.Fatalf("chain %d of %v overlaps %d (%v), want %d", i, chains, got, ok, want)
			}
			if ok {
				overlaps++
				index.shared(chains[i], got)
			}
			index.add(i, chains[i])
		}
	}
	if overlaps < 1000 {
		t.Errorf("only %d overlaps", overlaps)
	}
}

func overlapping(a, b chainMatch) bool {
	for k, values := range a.criteria {
		if !slices.ContainsFunc(values, func(v string) bool { return slices.Contains(b.criteria[k], v) }) {
			return false
		}
	}
	return true
}
