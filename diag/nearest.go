package diag

import "math/bits"

// Words are what stands to choice at some place, for "did you mean".
type Words struct {
	list []string
	sets []uint64 // which bytes are in each, folded into 64 bits
}

// NewWords makes Words of a list. The first of two that are equally near wins.
func NewWords(list []string) *Words {
	w := &Words{list: list, sets: make([]uint64, len(list))}
	for i, word := range list {
		w.sets[i] = bytesIn(word)
	}
	return w
}

// Nearest is the word that was most likely meant: one with the fewest letters to
// insert, drop, replace or swap, at most a third of them and not over two; or ""
// where none is that close.
func (w *Words) Nearest(word string) string {
	limit := max(1, min(2, len(word)/3))
	set := bytesIn(word)
	best := ""
	for i, candidate := range w.list {
		// A letter that is replaced takes one out of the set and puts one in.
		if n := len(candidate) - len(word); n > limit || -n > limit || bits.OnesCount64(set^w.sets[i]) > 2*limit {
			continue
		}
		if d := distance(word, candidate, limit); d > 0 && d <= limit {
			best, limit = candidate, d-1
		}
	}
	return best
}

func bytesIn(word string) uint64 {
	var set uint64
	for i := range len(word) {
		set |= 1 << (word[i] & 63)
	}
	return set
}

// distance is the number of letters to insert, drop or replace to make b of a,
// two that are swapped counting once, or some number above limit.
func distance(a, b string, limit int) int {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 0 || len(b) == 0 {
		return len(a) + len(b)
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		smallest := row[0]
		for j := range len(b) {
			row[j+1] = last[j]
			if a[i] != b[j] {
				row[j+1] = 1 + min(last[j], last[j+1], row[j])
				if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
					row[j+1] = min(row[j+1], 1+before[j-1])
				}
			}
			smallest = min(smallest, row[j+1])
		}
		if smallest > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
