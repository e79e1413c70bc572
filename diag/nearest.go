package diag

import (
	"slices"
	"sort"
	"strings"
)

const (
	// mostEdits is the largest number of edits between a word and its suggestion.
	mostEdits = 2
	// maxWord is the length of the longest word that gets a suggestion.
	maxWord = 1 << 10
	// maxPrefixes is the number of prefixes that one search visits. Some hundred suffice to find all words at
	// a distance of one. If a distance of two needs more, so many words are similar that the next word is no
	// better.
	maxPrefixes = 1_000
)

// Candidates is a list of names that "did you mean" chooses from.
type Candidates struct {
	sorted []choice
}

type choice struct {
	word string
	at   int // in the list
}

// NewCandidates makes Candidates of a list. The first of two that are equally near wins.
func NewCandidates(list []string) *Candidates {
	w := &Candidates{sorted: make([]choice, len(list))}
	for i, word := range list {
		w.sorted[i] = choice{word, i}
	}
	slices.SortFunc(w.sorted, func(a, b choice) int { return strings.Compare(a.word, b.word) })
	return w
}

// Nearest returns the word that was most likely meant: one with the fewest letters to
// insert, drop, replace or swap, at most a third of them and not over two; or ""
// where none is that close. It takes about as long for many words as for few: where very
// many are alike, it is the nearest of the first that were looked at.
func (w *Candidates) Nearest(word string) string {
	if len(word) > maxWord {
		return ""
	}
	var first row
	for k := range first {
		first[k] = mostEdits + 1
		if j := k - mostEdits; j >= 0 {
			first[k] = j
		}
	}
	for limit := 1; limit <= max(1, min(mostEdits, len(word)/3)); limit++ {
		s := search{words: w.sorted, word: word, limit: limit, left: maxPrefixes}
		s.descend(0, len(w.sorted), 0, first, first)
		if s.best.word != "" {
			return s.best.word
		}
	}
	return ""
}

// search goes down the words by their letters, as in a trie, as long as what it has
// passed can begin a word that is near enough.
type search struct {
	words []choice
	word  string
	limit int // of edits; the distance of the best word so far
	best  choice
	left  int // prefixes to look at
}

// row has the edits from some first letters of a candidate, as many as the row is deep,
// to the first j letters of the word, for the j that can matter: row[k] is for
// j = depth+k-mostEdits.
type row [2*mostEdits + 1]int

// descend visits words[from:to], which share their first depth letters. last is their row, before the row of
// one letter less.
func (s *search) descend(from, to, depth int, before, last row) {
	if s.left--; s.left < 0 || slices.Min(last[:]) > s.limit {
		return
	}
	for ; from < to && len(s.words[from].word) == depth; from++ {
		s.consider(s.words[from], last)
	}
	for from < to {
		letter := s.words[from].word[depth]
		next := from + sort.Search(to-from, func(i int) bool { return s.words[from+i].word[depth] > letter })
		s.descend(from, next, depth+1, last, s.further(s.words[from].word[:depth+1], before, last))
		from = next
	}
}

// consider takes a word that is as near as the best one, and comes before it.
func (s *search) consider(c choice, last row) {
	k := len(s.word) - len(c.word) + mostEdits
	if c.word == "" || c.word == s.word || k < 0 || k >= len(last) || last[k] > s.limit {
		return
	}
	if s.best.word == "" || last[k] < s.limit || c.at < s.best.at {
		s.best = c
	}
	s.limit = last[k]
}

// further returns the row of a prefix: before and last are those of two letters and of one
// letter less.
func (s *search) further(prefix string, before, last row) (next row) {
	depth := len(prefix)
	for k := range next {
		next[k] = mostEdits + 1
		j := depth + k - mostEdits
		if j < 0 || j > len(s.word) {
			continue
		}
		if k+1 < len(last) {
			next[k] = min(next[k], 1+last[k+1])
		}
		if k > 0 {
			next[k] = min(next[k], 1+next[k-1])
		}
		if j > 0 && prefix[depth-1] == s.word[j-1] {
			next[k] = min(next[k], last[k])
		} else if j > 0 {
			next[k] = min(next[k], 1+last[k])
		}
		if j > 1 && depth > 1 && prefix[depth-1] == s.word[j-2] && prefix[depth-2] == s.word[j-1] {
			next[k] = min(next[k], 1+before[k])
		}
	}
	return next
}
