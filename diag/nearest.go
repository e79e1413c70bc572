package diag

import (
	"slices"
	"sort"
	"strings"
)

const (
	// mostEdits is the largest number of edits from a word to its suggestion.
	mostEdits = 2
	// maxWord is the length, in bytes, of the longest word that gets a suggestion.
	maxWord = 1 << 10
	// maxPrefixes is the largest number of prefixes that one search visits. A few hundred suffice for all words at
	// a distance of one edit. A search at a distance of two edits may reach the limit if very many words are
	// similar; further words would not be better suggestions.
	maxPrefixes = 1_000
)

// Candidates is a list of names from which "did you mean" chooses.
type Candidates struct {
	sorted []choice
	words  func() map[string]bool // the parts of all names
}

type choice struct {
	word string
	at   int // its index in the list
}

// NewCandidates returns the Candidates of a list. Of two equally near names, Nearest returns the earlier one in the
// list.
func NewCandidates(list []string) *Candidates {
	w := &Candidates{sorted: make([]choice, len(list))}
	for i, word := range list {
		w.sorted[i] = choice{word, i}
	}
	slices.SortFunc(w.sorted, func(a, b choice) int { return strings.Compare(a.word, b.word) })
	w.words = wordsOf(w.sorted)
	return w
}

// Nearest returns the name that was most likely meant instead of word: the name with the fewest edits. An edit
// inserts, drops or replaces a letter, or swaps two neighbours. At most a third of the letters of word may be
// edited, and not more than two, but one edit is always possible. Nearest returns "" if no name is that near. It
// never returns word itself. If very many names are similar, Nearest looks only at the first maxPrefixes prefixes,
// so that its time has a bound.
func (w *Candidates) Nearest(word string) string {
	if len(word) > maxWord {
		return ""
	}
	for limit := 1; limit <= max(1, min(mostEdits, len(word)/3)); limit++ {
		s := search{words: w.sorted, word: word, limit: limit, left: maxPrefixes}
		s.run()
		if s.best.word != "" {
			return s.best.word
		}
	}
	return ""
}

// search is the state of a search through the sorted names, letter by letter, as through a trie. It leaves a branch
// when no name with the prefix can be near enough.
type search struct {
	words []choice
	word  string
	limit int // the largest number of edits; that of the best name so far, once found
	best  choice
	left  int // the number of prefixes that the search may still visit
}

// row holds numbers of edits from a prefix of a name to prefixes of the word. depth is the length of the prefix of
// the name. row[k] is for the prefix of the word with length depth+k-mostEdits; other lengths need more than
// mostEdits edits.
type row [2*mostEdits + 1]int

// run visits all words.
func (s *search) run() {
	var first row
	for k := range first {
		first[k] = mostEdits + 1
		if j := k - mostEdits; j >= 0 {
			first[k] = j
		}
	}
	s.descend(0, len(s.words), 0, first, first)
}

// descend visits words[from:to], which share their first depth letters. last is the row of these letters, and
// before the row of one letter less.
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

// consider makes c the best name if it is nearer than the best name so far, or as near and earlier in the list.
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

// further returns the row of a prefix. last is the row of the prefix without its last letter, and before the row
// without its last two letters.
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
